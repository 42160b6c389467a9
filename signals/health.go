package signals

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"path"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/hooks"
	"github.com/falldue/falldue/internal/worker"
	"github.com/falldue/falldue/ops"
)

const (
	// hangs is how long a worker may try no statement: one is tried every 15 seconds.
	hangs = 5 * time.Minute
	// silent is how long ago the database may have answered.
	silent = 45 * time.Second
	// askTimeout is how long the database has to answer a process without a worker.
	askTimeout = 2 * time.Second
)

// Health returns a handler for the probes of Kubernetes. Mount the handler at a path prefix such as
// /health/: it answers requests for paths that end with livez or readyz, with status 200 or 503 and JSON such as
//
//	{"ok":false,"why":"the database has not answered for 1m2s","handlers":{"default":4}}
//
// livez fails if [falldue.Queue.Run] has returned an error, or if the worker has tried no statement
// for 5 minutes: a restart may help. livez does not query the database, and an unavailable database
// does not fail it.
//
// readyz fails until Run has checked policies and tables, when the worker stops, and if the database
// has not answered for 45 seconds. In a process that has not called Run, readyz queries the database.
//
// Waiting tasks fail neither probe, since ending workers would make the tasks wait longer.
func Health(q *falldue.Queue) http.Handler {
	read := hooks.Of[interface{ Health() worker.Health }](q).Health
	ask := func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, askTimeout)
		defer cancel()
		_, err := ops.New(q).Now(ctx)
		return err
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h, why := read(), ""
		switch path.Base(r.URL.Path) {
		case "livez":
			why = notLive(h, time.Now())
		case "readyz":
			why = notReady(h, time.Now())
			if why == "" && !h.Running {
				if err := ask(r.Context()); err != nil {
					why = fmt.Sprintf("the database does not answer: %v", err)
				}
			}
		default:
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		if why != "" {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		_ = json.NewEncoder(w).Encode(answer{why == "", why, h.Handlers})
	})
}

// answer is the body of an answer.
type answer struct {
	OK       bool           `json:"ok"`
	Why      string         `json:"why,omitempty"`
	Handlers map[string]int `json:"handlers,omitempty"` // that run, by queue
}

// notLive returns why a process should be restarted, or "".
func notLive(h worker.Health, now time.Time) string {
	switch idle := now.Sub(h.Tried); {
	case h.Ended && h.Err != nil:
		return fmt.Sprintf("the worker has ended: %v", h.Err)
	case h.Running && idle > hangs:
		return fmt.Sprintf("the worker has tried no statement for %v", idle.Round(time.Second))
	}
	return ""
}

// notReady returns why a process does no work, or "".
func notReady(h worker.Health, now time.Time) string {
	switch away := now.Sub(h.Answered); {
	case h.Err != nil:
		return fmt.Sprintf("the worker has ended: %v", h.Err)
	case h.Ended:
		return "the worker has ended"
	case h.Stopping:
		return "the worker is stopping"
	case h.Checking:
		return "the worker has not checked policies and tables yet"
	case h.Running && away > silent:
		return fmt.Sprintf("the database has not answered for %v", away.Round(time.Second))
	}
	return ""
}
