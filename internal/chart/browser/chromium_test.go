package browser

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/falldue/falldue/internal/chart"
	"github.com/falldue/falldue/internal/chart/charttest"
)

//go:embed measure.js
var measure string

// look is a picture at a width.
type look struct {
	Name  string
	URL   string
	Width int
}

// seen is what the browser has measured of a look.
type seen struct {
	Name          string
	Width, Height float64
	Boxes         []box
	Colors        []string // of the background and of the first text
	Blocked       []string // by the page's security policy
	Error         string
}

// browse opens a page of a server in Chromium, and returns what the page sends back.
func browse(t *testing.T, mux *http.ServeMux, args ...string) []seen {
	t.Helper()
	program := requireProgram(t, "chromium")
	result := make(chan []seen, 1)
	mux.HandleFunc("POST /result", func(w http.ResponseWriter, r *http.Request) {
		var list []seen
		if err := json.NewDecoder(r.Body).Decode(&list); err != nil {
			t.Errorf("the page sent no result: %v", err)
		}
		w.WriteHeader(http.StatusNoContent)
		result <- list
	})
	mux.HandleFunc("GET /measure.js", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/javascript")
		fmt.Fprint(w, measure)
	})
	server := httptest.NewServer(mux)
	defer server.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	args = append([]string{
		"--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
		"--disable-component-update", "--disable-sync", "--user-data-dir=" + t.TempDir(), "--remote-debugging-port=0",
	}, args...)
	cmd := exec.CommandContext(ctx, program, append(args, server.URL+"/")...)
	var output strings.Builder
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &output, &output, 10*time.Second
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // so that all of its processes end with it
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case list := <-result:
		cancel()
		t.Log("chromium was killed:", <-ended)
		return list
	case err := <-ended:
		t.Fatalf("chromium ended before the page was measured: %v\n%s", err, output.String())
	}
	return nil
}

// schemes are the themes of a reader's system, as settings of Chromium.
var schemes = map[chart.Theme]string{chart.Light: "--blink-settings=preferredColorScheme=1", chart.Dark: "--blink-settings=preferredColorScheme=0"}

// fonts are as wide and as narrow as readers have. The first is the system's.
var fonts = []string{"", "DejaVu Sans", "Liberation Sans"}

// TestTextsHaveRoomInChromium measures the boxes of all texts.
func TestTextsHaveRoomInChromium(t *testing.T) {
	t.Parallel()
	all := pictures(t)
	for theme, setting := range schemes {
		t.Run(fmt.Sprintf("theme %d", theme), func(t *testing.T) {
			var looks []look
			mux := http.NewServeMux()
			for i, p := range all {
				url := fmt.Sprintf("/%d.svg", i)
				mux.HandleFunc("GET "+url, func(w http.ResponseWriter, _ *http.Request) {
					w.Header().Set("Content-Type", "image/svg+xml")
					fmt.Fprint(w, p.svg)
				})
				for _, width := range p.widths {
					looks = append(looks, look{fmt.Sprintf("%s at %d pixels", p.name, width), url, width})
				}
			}
			page, err := json.Marshal(map[string]any{"looks": looks, "fonts": fonts})
			if err != nil {
				t.Fatal(err)
			}
			mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
				fmt.Fprintf(w, `<!doctype html><script type="application/json" id="page">%s</script><script src="measure.js"></script>`, page)
			})
			list := browse(t, mux, setting)
			if len(list) != len(looks)*len(fonts) {
				t.Errorf("%d pictures were measured, of %d in %d fonts", len(list), len(looks), len(fonts))
			}
			for _, s := range list {
				if s.Error != "" {
					t.Errorf("%s: %s", s.Name, s.Error)
					continue
				}
				check(t, s.Name, s.Boxes, s.Width, s.Height)
				checkColors(t, s, theme)
				for _, b := range s.Boxes {
					if s.Width >= 360 && b.Font < 10 {
						t.Errorf("%s: %q has %.1f pixels; people need 10", s.Name, b.Text, b.Font)
					}
				}
			}
		})
	}
}

func checkColors(t *testing.T, s seen, theme chart.Theme) {
	t.Helper()
	for i, c := range []chart.Color{chart.Paper, chart.Ink} {
		rgb := theme.RGB(c)
		if want := fmt.Sprintf("rgb(%d, %d, %d)", rgb.R, rgb.G, rgb.B); len(s.Colors) != 2 || s.Colors[i] != want {
			t.Errorf("%s: the colors are %v, want %s at %d", s.Name, s.Colors, want, i)
			return
		}
	}
}

// TestPagesShowPictures: pictures inside a page take its colors, whose theme may be another
// than the system's, and its security policy blocks nothing of them.
func TestPagesShowPictures(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		system, want chart.Theme
		attribute    string
	}{
		"a light system": {chart.Light, chart.Light, ""}, "a dark system": {chart.Dark, chart.Dark, ""},
		"a dark page": {chart.Light, chart.Dark, `data-theme="dark"`}, "a light page": {chart.Dark, chart.Light, `data-theme="light"`},
	} {
		t.Run(name, func(t *testing.T) {
			mux := http.NewServeMux()
			mux.HandleFunc("GET /chart.css", func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/css")
				fmt.Fprint(w, chart.CSS()+"body{background:var(--chart-paper);width:600px}")
			})
			mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; frame-ancestors 'none'")
				fmt.Fprintf(w, `<!doctype html><html %s><link rel="stylesheet" href="chart.css"><script src="measure.js" defer></script><body>`, c.attribute)
				for _, figure := range charttest.Figures() {
					fmt.Fprint(w, figure.Draw(600).SVG(chart.Page))
				}
			})
			list := browse(t, mux, schemes[c.system])
			if len(list) != len(charttest.Figures()) {
				t.Errorf("%d pictures were measured", len(list))
			}
			for _, s := range list {
				check(t, s.Name, s.Boxes, s.Width, s.Height)
				checkColors(t, s, c.want)
				if len(s.Blocked) > 0 || s.Error != "" {
					t.Errorf("%s: %s; the page's policy blocked %v", s.Name, s.Error, s.Blocked)
				}
			}
		})
	}
}
