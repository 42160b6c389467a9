package dash

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"html/template"
	"mime"
	"net/http"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/falldue/falldue/internal/chart"
)

//go:embed assets
var assetFiles embed.FS

// asset is a file that never changes under its name.
type asset struct{ name, public, kind, content string }

// assets are the style sheet, which includes the pictures' style sheet, and the script.
var assets = sync.OnceValue(func() (list []asset) {
	for _, name := range []string{"dash.css", "dash.js"} {
		content, err := assetFiles.ReadFile("assets/" + name)
		if err != nil {
			panic(err) // it is embedded
		}
		if name == "dash.css" {
			content = append([]byte(chart.CSS()), content...)
		}
		hash := sha256.Sum256(content)
		extension := path.Ext(name)
		public := "assets/" + strings.TrimSuffix(name, extension) + "." + hex.EncodeToString(hash[:6]) + extension
		list = append(list, asset{name, public, mime.TypeByExtension(extension), string(content)})
	}
	return list
})

// assetName returns the relative URL of an asset.
func assetName(name string) string {
	for _, a := range assets() {
		if a.name == name {
			return a.public
		}
	}
	return ""
}

func serveAsset(w http.ResponseWriter, r *http.Request, name string) {
	for _, a := range assets() {
		if a.public == "assets/"+name {
			w.Header().Set("Content-Type", a.kind)
			w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
			http.ServeContent(w, r, "", time.Time{}, bytes.NewReader([]byte(a.content)))
			return
		}
	}
	http.NotFound(w, r)
}

// icons are drawn on 16 by 16 pixels with lines of the text's color.
var icons = map[string]string{
	"running":        "M4 3l9 5-9 5z",
	"due":            "M8 2.5a5.5 5.5 0 100 11 5.5 5.5 0 100-11M8 6.8a1.2 1.2 0 100 2.4 1.2 1.2 0 100-2.4",
	"scheduled":      "M8 2.5a5.5 5.5 0 100 11 5.5 5.5 0 100-11M8 5v3l2.2 1.6",
	"backing_off":    "M3 8a5 5 0 108.6-3.5M12 2v3H9",
	"snoozed":        "M12.8 9.6A5.5 5.5 0 016.4 3.2 5.5 5.5 0 1012.8 9.6z",
	"paused":         "M5.5 3.5v9M10.5 3.5v9",
	"limited":        "M2.5 11.5a5.5 5.5 0 0111 0M8 11.5l2.8-3.6",
	"unknown_policy": "M5.8 6a2.2 2.2 0 113.2 2c-.7.4-1 .8-1 1.6M8 12v.4",
	"blocked":        "M3.5 7.5h9v6h-9zM5.5 7.5V5.4a2.5 2.5 0 015 0v2.1",
	"open":           "M8 2.5a5.5 5.5 0 100 11 5.5 5.5 0 100-11M8 6.8a1.2 1.2 0 100 2.4 1.2 1.2 0 100-2.4",
	"deleted":        "M4 4l8 8M12 4l-8 8",
	"done":           "M3 8.5l3.3 3.3L13 5",
	"dead":           "M4 4l8 8M12 4l-8 8",
	"cancelled":      "M8 2.5a5.5 5.5 0 100 11 5.5 5.5 0 100-11M4.2 4.2l7.6 7.6",
	"warn":           "M8 2.5l6 11H2zM8 6.5v3M8 11.4v.4",
	"search":         "M7 2.8a4.2 4.2 0 100 8.4 4.2 4.2 0 100-8.4M10.2 10.2l3.3 3.3",
	"theme":          "M8 2.5a5.5 5.5 0 100 11zM8 2.5a5.5 5.5 0 110 11",
}

// icon returns the picture of a name. Words next to the icon give its meaning.
func icon(name string) template.HTML {
	d, ok := icons[name]
	if !ok {
		return ""
	}
	return template.HTML(`<svg class="icon" viewBox="0 0 16 16" aria-hidden="true"><path d="` + d + `"/></svg>`) //nolint:gosec // of constants
}
