package falldue_test

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/internal/testdb"
)

// TestRowsEditedIntoNonsense: whatever somebody writes into rows, the tasks
// beside them run, and what cannot run is reported.
func TestRowsEditedIntoNonsense(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		db := testdb.Open(t, engine)
		var log lockedBuilder
		q, err := falldue.New(db, falldue.Config{
			Keep: time.Hour, PollInterval: 10 * time.Millisecond, Logger: slog.New(slog.NewTextHandler(&log, nil)),
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := q.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		kind := falldue.NewKind[string]("edited", falldue.KindConfig{Policy: backoff.Constant(0).WithMaxAttempts(3)})
		far := map[string]string{
			testdb.Postgres: "'infinity'", testdb.MySQL: "'9999-12-31 23:59:59'", testdb.MariaDB: "'9999-12-31 23:59:59'", testdb.TiDB: "'9999-12-31 23:59:59'", testdb.SQLite: "253402300799000000",
		}[engine]
		edits := map[string]struct {
			set  string
			want falldue.State // how it ends; "" is not at all
		}{
			"negative attempts": {"attempts = -7", falldue.Done},
			"most attempts":     {"attempts = 2147483647", falldue.Dead},
			"highest fence":     {"fence = 9223372036854775807", ""},
			"lowest fence":      {"fence = -9223372036854775807", falldue.Done},
			"unknown policy":    {"policy = 'nobodyknowsthis'", ""},
			"the year 9999":     {"updated_at = " + far, ""},
			"negative limit":    {"max_attempts = -1", falldue.Done},
			"created in 9999":   {"created_at = " + far, falldue.Done},
			"first tried then":  {"first_attempted_at = " + far, falldue.Done},
			"unknown worker":    {"claimed_by = 'nobody', fence = 4, attempts = 1", falldue.Done},
			"highest priority":  {"priority = 32767", falldue.Done},
		}
		if engine != testdb.Postgres { // whose column takes JSON alone
			edits["broken payload"] = struct {
				set  string
				want falldue.State
			}{"payload = '{\"half'", falldue.Dead}
		}
		if engine == testdb.SQLite {
			edits["text for a moment"] = struct {
				set  string
				want falldue.State
			}{"updated_at = 'yesterday'", ""}
		}
		ids := map[string]int64{}
		for name := range edits {
			if ids[name], err = kind.Enqueue(t.Context(), q, name); err != nil {
				t.Fatal(err)
			}
		}
		for name, edit := range edits {
			update := db.Rebind("update falldue_tasks set " + edit.set + " where id = ?")
			if _, err := db.Exec(update, ids[name]); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		ran := make(chan string, 1000)
		falldue.Handle(q, kind, func(_ context.Context, task falldue.Task[string]) error { ran <- task.Args; return nil })
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- q.Run(ctx) }()

		for name, edit := range edits {
			if edit.want == "" {
				continue
			}
			waitFor(t, name, func() bool {
				info, err := q.Task(t.Context(), ids[name])
				return err == nil && info.State == edit.want
			})
		}
		// The others still run, before and behind every lane of nonsense.
		for _, priority := range []int{-32768, 1, 32767} {
			id, err := kind.Enqueue(t.Context(), q, "sane", falldue.EnqueueOptions{Priority: priority})
			if err != nil {
				t.Fatal(err)
			}
			waitFor(t, "a sane task", func() bool {
				info, err := q.Task(t.Context(), id)
				return err == nil && info.State == falldue.Done
			})
		}
		waitFor(t, "a report", func() bool { return strings.Contains(log.String(), "nobodyknowsthis") })
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if strings.Contains(log.String(), "cannot poll") {
			t.Errorf("a row stopped the poll:\n%.2000s", log.String())
		}
	})
}

// waitFor waits until ok.
func waitFor(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("waited a minute for %s", what)
		}
		<-tick.C
	}
}

// lockedBuilder is where a logger of several goroutines writes to.
type lockedBuilder struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *lockedBuilder) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuilder) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
