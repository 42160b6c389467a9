package retry_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/internal/retry"
)

func TestFailuresAreLoggedOnceAMinute(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, err := dialect.Of(dialect.SQLite)
		if err != nil {
			t.Fatal(err)
		}
		var text bytes.Buffer
		var last error
		troubles := map[string]int{} // how often each was reported
		log := retry.Sparse(slog.New(slog.NewTextHandler(&text, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		}})), d.Classify, func(role, queue string, err error) {
			troubles[role+" "+queue]++
			last = err
		})
		for i := range 90 { // seconds
			log.Warn("falldue: cannot poll for tasks", "queue", "q", retry.Failed(fmt.Errorf("row %d is odd", i)))
			log.With("queue", "q").Warn("falldue: cannot claim tasks", retry.Failed(io.EOF))
			log.Warn("falldue: cannot record the outcomes of tasks", retry.Failed(fmt.Errorf("settle: %w", io.EOF)))
			if i%45 == 0 {
				log.Warn("falldue: cannot record the outcome of a task", "task", 7, "error", errors.New("of one task"))
			}
			log.Warn("falldue: cannot delete", "queue", "q", retry.FailedIn("cleaner", io.EOF))
			time.Sleep(time.Second)
		}
		const want = `level=WARN msg="falldue: cannot poll for tasks" queue=q error="row 0 is odd"
level=WARN msg="falldue: the database does not answer" queue=q error=EOF during="claim tasks"
level=WARN msg="falldue: cannot record the outcome of a task" task=7 error="of one task"
level=WARN msg="falldue: cannot record the outcome of a task" task=7 error="of one task"
level=WARN msg="falldue: cannot poll for tasks" queue=q error="row 60 is odd" repeated=59
level=WARN msg="falldue: the database does not answer" queue=q error=EOF during="claim tasks" repeated=179
`
		log.Warn("falldue: cannot announce", retry.FailingIn("announcer", io.ErrNoProgress, true)) // has had its line
		if got := text.String(); got != want {
			t.Errorf("the log has\n%s\nwant\n%s", got, want)
		}
		quiet := retry.Sparse(slog.New(slog.DiscardHandler), d.Classify, func(role, queue string, _ error) { troubles[role+" "+queue]++ })
		quiet.Warn("falldue: cannot listen", retry.FailedIn("listener", io.EOF)) // is reported without being written
		if want := map[string]int{"announcer ": 1, "cleaner q": 90, "listener ": 1}; !maps.Equal(troubles, want) || !errors.Is(last, io.ErrNoProgress) {
			t.Errorf("the troubles are %v, the last %v; want %v", troubles, last, want)
		}
	})
}

// TestAClosedDatabaseIsAway: the error of a closed database has no code.
func TestAClosedDatabaseIsAway(t *testing.T) {
	t.Parallel()
	for _, name := range dialect.Names {
		d, err := dialect.Of(name)
		if err != nil {
			t.Fatal(err)
		}
		db := sql.OpenDB(nil)
		_ = db.Close()
		if _, err := db.Conn(context.WithoutCancel(t.Context())); retry.KindOf(d.Classify(err), false) != retry.Outage {
			t.Errorf("%s: %v is of class %v", name, err, d.Classify(err))
		}
		if err := sql.ErrConnDone; retry.KindOf(d.Classify(err), false) != retry.Outage {
			t.Errorf("%s: %v is of class %v", name, err, d.Classify(err))
		}
		if text := strings.TrimSpace(d.Classify(errors.New("sql: database is closed")).String()); text != "other" {
			t.Errorf("%s: an error is classified by its text: %s", name, text)
		}
	}
}
