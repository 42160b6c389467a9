package dash

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/chart"
	"github.com/falldue/falldue/internal/store"
	"github.com/falldue/falldue/internal/words"
	"github.com/falldue/falldue/ops"
)

//go:embed templates
var templateFiles embed.FS

// templates are the parts of pages.
var templates = template.Must(template.New("").Funcs(functions).ParseFS(templateFiles, "templates/*.html"))

// page is the content of a page.
type page struct {
	Title, Nav string
	Regions    []region
	// Live reports whether the page refreshes itself.
	Live bool
}

// region is a part of a page that is refreshed by itself.
type region struct {
	ID, Template string
	Data         any
	// Fixed parts, such as forms, are not refreshed.
	Fixed bool
}

// frame is the argument of a template.
type frame struct {
	*request
	P page
	D any
}

// Options are the handler's options.
func (f frame) Options() Options { return f.h.options }

// UserName is the name of the user, or "".
func (f frame) UserName() string { return f.user.Name }

// RefreshMS is the time between two refreshes in milliseconds.
func (f frame) RefreshMS() int64 { return f.h.options.Refresh.Milliseconds() }

// Search is the text of the search field.
func (f frame) Search() string { return f.query.Get("match") }

// messages are the texts that confirm a change, by the value of the parameter done.
var messages = map[string]string{
	"retried": "The task will run again. It is due now.", "args": "The task has the new arguments.", "edited": "The task will run again with the new arguments. It is due now.",
	"cancelled": "The task is cancelled. If it is running, its handler's context is cancelled within two seconds.", "deleted": "The task is deleted.",
	"paused": "Paused. Workers apply this within two seconds.", "resumed": "Resumed. Workers apply this within two seconds.",
	"set": "The policy is set. Workers apply it within two seconds.", "cleared": "The override is cleared. Workers return to the code's policy within two seconds.",
	"schedule": "The schedule is changed. Processes apply the change within five seconds.", "triggered": "The schedule's task is enqueued.",
	"run": "The task is due now.", "enqueued": "The task is enqueued.",
	"stopped": "Stopping after the current batch.",
}

// Message confirms the change that was made, or is "".
func (f frame) Message() string { return messages[f.query.Get("done")] }

// render writes a page or, for a refresh, its parts that may have changed.
func (in *request) render(status int, p page) {
	var body bytes.Buffer
	f := frame{request: in, P: p}
	part := in.r.Header.Get("Falldue-Part") != ""
	err := error(nil)
	if !part {
		err = templates.ExecuteTemplate(&body, "head", f)
	}
	for _, region := range p.Regions {
		if part && region.Fixed || err != nil {
			continue
		}
		fixed := ""
		if region.Fixed {
			fixed = " data-fixed"
		}
		fmt.Fprintf(&body, "<section id=%q class=region%s>\n", region.ID, fixed)
		f.D = region.Data
		err = templates.ExecuteTemplate(&body, region.Template, f)
		body.WriteString("</section>\n")
	}
	if !part && err == nil {
		f.D = nil
		err = templates.ExecuteTemplate(&body, "foot", f)
	}
	if err != nil {
		in.h.options.Logger.Error("falldue: dashboard cannot render a page", "path", in.r.URL.Path, "error", err)
		http.Error(in.w, "The page could not be rendered. The log explains why.", http.StatusInternalServerError)
		return
	}
	in.w.Header().Set("Content-Type", "text/html; charset=utf-8")
	in.w.Header().Add("Vary", "Falldue-Part")
	in.w.WriteHeader(status)
	if in.r.Method != http.MethodHead {
		_, _ = io.WriteString(in.w, visible(body.String())) // the viewer may be gone
	}
}

// trouble is an error as a page shows it.
type trouble struct{ Text, Advice string }

// fail renders a page that has only an error.
func (in *request) fail(status int, text string) {
	in.failWith(status, trouble{Text: text})
}

func (in *request) failWith(status int, t trouble) {
	in.render(status, page{Title: http.StatusText(status), Regions: []region{{ID: "error", Template: "error", Data: t}}})
}

// failed renders an error of a read or of a change.
func (in *request) failed(err error) {
	if errors.Is(err, errForbidden) {
		in.fail(http.StatusForbidden, "You do not have permission to do that. Nothing was changed.")
		return
	}
	status := http.StatusInternalServerError
	var rejected mistake
	switch {
	case errors.As(err, &rejected), errors.Is(err, falldue.ErrInvalid):
		status = http.StatusBadRequest
	case errors.Is(err, falldue.ErrNotFound):
		status = http.StatusNotFound
	case errors.Is(err, falldue.ErrWrongState), errors.Is(err, falldue.ErrRunning), errors.Is(err, falldue.ErrExists):
		status = http.StatusConflict
	case errors.Is(err, context.DeadlineExceeded):
		status = http.StatusGatewayTimeout
	}
	in.failWith(status, *troubleOf(err))
}

// troubleOf returns an error as pages show it, or nil for nil.
func troubleOf(err error) *trouble {
	if err == nil {
		return nil
	}
	t := &trouble{Text: strings.TrimPrefix(err.Error(), "falldue: ")}
	switch {
	case errors.Is(err, falldue.ErrNotMigrated):
		t.Text, t.Advice = "The tables do not exist.", "Run \"falldue migrate up\", or call Queue.Migrate."
	case errors.Is(err, context.DeadlineExceeded):
		t.Text, t.Advice = "The database did not answer within the time limit.", "Narrow the filter, or look at the database's load. The page tries again."
	case errors.Is(err, falldue.ErrNotFound):
		t.Text = strings.ToUpper(t.Text[:1]) + t.Text[1:] + "."
		if _, other := errors.AsType[store.Missing](err); !other {
			t.Advice = "Done tasks are deleted immediately, unless DoneRetention is set."
		}
	}
	return t
}

// mistake is an error of a form.
type mistake string

func (m mistake) Error() string { return string(m) }

// pair is two values of a template.
type pair struct{ A, B any }

// functions are what templates call.
var functions = template.FuncMap{
	"pair":     func(a, b any) pair { return pair{a, b} },
	"num":      func(n any) string { return words.Number(toInt(n)) },
	"rate":     rateText,
	"dur":      durText,
	"takes":    takesText,
	"age":      ageText,
	"ms":       time.Duration.Milliseconds,
	"safe":     visible,
	"clip":     clip,
	"utc":      func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") },
	"rfc":      func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
	"rel":      relative,
	"link":     link,
	"icon":     icon,
	"css":      func() string { return assetName("dash.css") },
	"js":       func() string { return assetName("dash.js") },
	"count":    func(n any, thing string) string { return words.Count(toInt(n), thing) },
	"task":     func(queue, kind string, id int64) Target { return Target{Queue: queue, Kind: kind, ID: id} },
	"any":      func() Target { return Target{} },
	"phase":    phaseWord,
	"flowWord": flowWord,
	"join":     strings.Join,
	"stepText": stepText,
	"add":      func(a, b int) int { return a + b },
	"prefix":   strings.TrimPrefix,
}

func toInt(n any) int64 {
	switch n := n.(type) {
	case int:
		return int64(n)
	case int64:
		return n
	case time.Duration:
		return int64(n)
	}
	return 0
}

// durText writes a duration as all pages and the command do.
func durText(d time.Duration) string { return words.Span(d) }

// rateText formats a number of tasks a second.
func rateText(v float64) string {
	if v > 0 && v < 0.1 {
		return fmt.Sprintf("%.2g", v)
	}
	if v < 10 {
		return fmt.Sprintf("%.1f", v)
	}
	return words.Number(int64(v + 0.5))
}

// ageText returns a value's age in words.
func ageText(d time.Duration) string {
	if d < time.Second {
		return "now"
	}
	return durText(d.Truncate(time.Second)) + " ago"
}

// relative returns the distance of a time from now, in words.
func relative(t, now time.Time) string {
	switch d := t.Sub(now); {
	case t.IsZero():
		return "–"
	case d >= time.Second:
		return "in " + durText(d.Round(time.Second))
	case d <= -time.Second:
		return durText((-d).Round(time.Second)) + " ago"
	}
	return "now"
}

// link returns a relative URL with parameters, which are names and values in turn. Empty values are left out.
func link(path string, params ...string) string {
	v := url.Values{}
	for i := 0; i+1 < len(params); i += 2 {
		if params[i+1] != "" {
			v.Set(params[i], params[i+1])
		}
	}
	if len(v) == 0 {
		return path
	}
	return path + "?" + v.Encode()
}

// visible replaces control characters, and characters that change the direction of text, with visible ones.
func visible(text string) string {
	var b strings.Builder
	for _, r := range text {
		switch {
		case r == '\n' || r == '\t':
			b.WriteRune(r)
		case unicode.IsControl(r), unicode.Is(unicode.Cf, r), r == unicode.ReplacementChar:
			fmt.Fprintf(&b, "\\u%04x", r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// clip returns the first characters of the first line of a text.
func clip(most int, text string) string {
	text, _, _ = strings.Cut(strings.TrimSpace(text), "\n")
	runes := []rune(visible(text))
	if len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return string(runes)
}

// svg returns a picture for a page, with a label for screen readers. Package chart escapes texts in
// it.
func svg(label string, f chart.Figure) template.HTML {
	d := f.Draw(chart.Width)
	d.Title = label
	return template.HTML(d.SVG(chart.Page)) //nolint:gosec // see above
}

// stepText names the step of an override that is in effect. It is "" if the override has only one step.
func stepText(o any) string {
	switch o := o.(type) {
	case ops.Override:
		return ops.StepText(o)
	case *ops.Override:
		return ops.StepText(*o)
	}
	return ""
}

// takesText returns a duration in words.
func takesText(d time.Duration) string {
	if d < time.Second {
		return "less than a second"
	}
	return "about " + durText(d.Round(time.Second))
}
