// Package browser tests the web page in Chromium.
package browser

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/chromedp"
	"github.com/jmoiron/sqlx"
	_ "modernc.org/sqlite"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/dash"
)

var webhook = falldue.NewKind[json.RawMessage]("webhook", falldue.KindConfig{Policy: backoff.ParseDeferred("delay 1h; attempts 5")})

// site serves the page of a queue in which a task waits for a retry, under a path and with a hostile payload.
func site(t *testing.T) (url string, waits int64, q *falldue.Queue) {
	t.Helper()
	db, err := sqlx.Open("sqlite", "file:"+filepath.Join(t.TempDir(), "site.db")+"?_pragma=busy_timeout(10000)&_pragma=journal_mode(wal)")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	if q, err = falldue.New(db, falldue.Config{Logger: slog.New(slog.DiscardHandler)}); err != nil {
		t.Fatal(err)
	}
	if err := q.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	work, stop := context.WithCancel(t.Context())
	failed := make(chan struct{}, 1)
	falldue.Handle(q, webhook, func(context.Context, falldue.Task[json.RawMessage]) error {
		failed <- struct{}{}
		return errors.New("</script><script>alert(1)</script>" + strings.Repeat("long", 300))
	})
	receipt, err := webhook.Enqueue(t.Context(), q, json.RawMessage(`{"note": "</script><img src=x onerror=alert(2)>"}`))
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- q.Run(work) }()
	<-failed
	stop()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	h, err := dash.New(q, dash.Options{Logger: slog.New(slog.DiscardHandler), Allow: func(context.Context, dash.User, dash.Action, dash.Target) bool { return true }})
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/ops/falldue/", http.StripPrefix("/ops/falldue", h))
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL + "/ops/falldue/", receipt.ID, q
}

// browse returns a tab of a headless Chromium, and what the browser has reported in it, such as violations of the
// Content-Security-Policy.
func browse(t *testing.T) (context.Context, *[]string) {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath("chromium"), chromedp.NoSandbox)
	all, cancel := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(cancel)
	tab, cancelTab := chromedp.NewContext(all, chromedp.WithErrorf(func(string, ...any) {})) // events of a newer Chromium
	t.Cleanup(cancelTab)
	tab, cancelTime := context.WithTimeout(tab, 15*time.Minute)
	t.Cleanup(cancelTime)
	reported := new([]string)
	chromedp.ListenTarget(tab, func(event any) {
		if e, ok := event.(*log.EventEntryAdded); ok && e.Entry.Level == log.LevelError {
			*reported = append(*reported, e.Entry.Text)
		}
	})
	if err := chromedp.Run(tab, log.Enable()); err != nil {
		t.Fatal(err)
	}
	return tab, reported
}

// TestPagesFit: each page at three widths and in both themes has no sideways scroll, and the browser reports nothing.
func TestPagesFit(t *testing.T) {
	url, waits, _ := site(t)
	tab, reported := browse(t)
	for _, path := range []string{"", "tasks", fmt.Sprint("task?id=", waits), "failures", "queues", "running", "limits", "workers", "policies", "policy?subject=kind:webhook&form=slow&factor=4", "schedules", "changes", "new", "doctor"} {
		for _, width := range []int64{360, 768, 1280} {
			for _, theme := range []string{"light", "dark"} {
				var size struct {
					Wide  int    `json:"wide"`
					Title string `json:"title"`
					Paper string `json:"paper"`
				}
				err := chromedp.Run(tab,
					emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: theme}}),
					chromedp.EmulateViewport(width, 900), chromedp.Navigate(url+path),
					chromedp.Evaluate(`({wide: document.documentElement.scrollWidth, title: document.title, paper: getComputedStyle(document.body).backgroundColor})`, &size))
				if err != nil {
					t.Fatalf("%s: %v", path, err)
				}
				if int64(size.Wide) > width || !strings.Contains(size.Title, "falldue") {
					t.Errorf("page %q, %q, is %d pixels wide at %d", path, size.Title, size.Wide, width)
				}
				if dark := size.Paper == "rgb(13, 17, 23)"; dark != (theme == "dark") {
					t.Errorf("page %q has the ground %s in the %s theme", path, size.Paper, theme)
				}
			}
		}
	}
	for _, text := range *reported {
		t.Errorf("the browser reports: %s", text)
	}
}

// TestActionsInABrowser: a button runs a waiting task, with scripts and without, and the page of changes has who and why.
func TestActionsInABrowser(t *testing.T) {
	for _, scripts := range []bool{true, false} {
		t.Run(fmt.Sprint("scripts ", scripts), func(t *testing.T) {
			url, waits, q := site(t)
			tab, reported := browse(t)
			var message, changes string
			err := chromedp.Run(tab,
				emulation.SetScriptExecutionDisabled(!scripts),
				chromedp.Navigate(url+fmt.Sprint("task?id=", waits)),
				chromedp.Click(`//summary[starts-with(text(), "Run now")]`, chromedp.BySearch),
				chromedp.SendKeys(`form[action="run"] input[name="why"]`, "the partner is back", chromedp.ByQuery),
				chromedp.Click(`form[action="run"] button`, chromedp.ByQuery),
				chromedp.WaitVisible(`//*[@role="status" and contains(text(), "due now")]`, chromedp.BySearch),
				chromedp.Text(`[role="status"]`, &message, chromedp.ByQuery),
				chromedp.Navigate(url+"changes"), chromedp.Text("main", &changes, chromedp.ByQuery))
			if err != nil {
				t.Fatal(err)
			}
			if task, err := q.Task(t.Context(), waits); err != nil || task.State != falldue.StateSnoozed {
				t.Errorf("the task is %+v, error %v", task.State, err)
			}
			if !strings.Contains(message, "due now") || !strings.Contains(changes, "the partner is back") {
				t.Errorf("the page says %q, and the page of changes %q", message, changes)
			}
			for _, text := range *reported {
				t.Errorf("the browser reports: %s", text)
			}
		})
	}
}
