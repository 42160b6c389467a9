package signals_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/signalstest"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/internal/worker"
	"github.com/falldue/falldue/signals"
)

// probe asks for livez or readyz, and returns the status and why.
func probe(t *testing.T, h http.Handler, name string) (status int, why string) {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/health/"+name, nil))
	var body struct {
		OK  bool
		Why string
	}
	if w.Code != http.StatusNotFound {
		if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil || body.OK != (w.Code == http.StatusOK) || body.OK != (body.Why == "") {
			t.Errorf("%s answers %d, %s", name, w.Code, w.Body)
		}
	}
	return w.Code, body.Why
}

func wantProbes(t *testing.T, h http.Handler, when string, livez, readyz int) (why string) {
	t.Helper()
	live, notLive := probe(t, h, "livez")
	ready, notReady := probe(t, h, "readyz")
	if live != livez || ready != readyz {
		t.Errorf("%s: livez is %d %q, want %d; readyz is %d %q, want %d", when, live, notLive, livez, ready, notReady, readyz)
	}
	return notLive + notReady
}

// TestHealthFollowsTheWorker: from before Run to its end, and without a database.
func TestHealthFollowsTheWorker(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		began, begin := make(chan struct{}), make(chan struct{})
		stopping := make(chan struct{})
		slow := falldue.NewKind[int]("slow", falldue.KindConfig{})
		q, db := signalstest.Queue(t, engine, falldue.Config{})
		falldue.Handle(q, slow, func(context.Context, falldue.Task[int]) error {
			close(began)
			<-begin
			return nil
		})
		h := signals.Health(q)
		wantProbes(t, h, "before Run", 200, 200)
		if status, _ := probe(t, h, "elsewhere"); status != http.StatusNotFound {
			t.Errorf("another path answers %d", status)
		}
		if _, err := slow.Enqueue(t.Context(), q, 1); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- q.Run(ctx) }()
		<-began
		wantProbes(t, h, "while it runs", 200, 200)
		stop()
		go func() {
			defer close(stopping)
			for { // until the worker has noticed
				if status, _ := probe(t, h, "readyz"); status == http.StatusServiceUnavailable {
					return
				}
			}
		}()
		<-stopping
		if why := wantProbes(t, h, "while it stops", 200, 503); why != "the worker is stopping" {
			t.Errorf("while it stops: %s", why)
		}
		close(begin)
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		wantProbes(t, h, "after its end", 200, 503)
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		if err := q.Run(t.Context()); err == nil {
			t.Fatal("Run without a database has returned nil")
		}
		if why := wantProbes(t, h, "after Run has failed", 503, 503); !strings.Contains(why, "the worker has ended: ") {
			t.Errorf("after Run has failed: %s", why)
		}
	})
}

func TestHealthOfAProcessThatOnlyEnqueues(t *testing.T) {
	t.Parallel()
	q, db := signalstest.Queue(t, testdb.SQLite, falldue.Config{})
	h := signals.Health(q)
	wantProbes(t, h, "with a database", 200, 200)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if why := wantProbes(t, h, "without one", 200, 503); !strings.HasPrefix(why, "the database does not answer: ") {
		t.Errorf("without a database: %s", why)
	}
}

// TestHealthKnowsOutages: an unavailable database makes a worker unready, and does not end it.
func TestHealthKnowsOutages(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for _, c := range []struct {
		name        string
		h           worker.Health
		live, ready string
	}{
		{"works", worker.Health{Running: true, Tried: now.Add(-14 * time.Second), Answered: now.Add(-14 * time.Second)}, "", ""},
		{"no answers", worker.Health{Running: true, Tried: now, Answered: now.Add(-46 * time.Second)}, "", "the database has not answered for 46s"},
		{"no answers for an hour", worker.Health{Running: true, Tried: now, Answered: now.Add(-time.Hour)}, "", "the database has not answered for 1h0m0s"},
		{"hangs", worker.Health{Running: true, Tried: now.Add(-6 * time.Minute), Answered: now.Add(-6 * time.Minute)}, "the worker has tried no statement for 6m0s", "the database has not answered for 6m0s"},
		{"checks", worker.Health{Checking: true, Tried: now.Add(-time.Hour)}, "", "the worker has not checked policies and tables yet"},
		{"only enqueues", worker.Health{Tried: now.Add(-time.Hour), Answered: now.Add(-time.Hour)}, "", ""},
	} {
		if live, ready := signals.NotLive(c.h, now), signals.NotReady(c.h, now); live != c.live || ready != c.ready {
			t.Errorf("%s: %q and %q, want %q and %q", c.name, live, ready, c.live, c.ready)
		}
	}
}
