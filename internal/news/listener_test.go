package news

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/falldue/falldue/internal/retry"
)

// notifiedFunc is told of notices.
type notifiedFunc func(notice string)

func (f notifiedFunc) Notified(notice string) { f(notice) }

// TestListenerReportsEachChange: a failure is reported when it begins, each minute while it lasts,
// and when it ends.
func TestListenerReportsEachChange(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		ctx, cancel := context.WithCancel(t.Context())
		begin, woken := time.Now(), 0
		l := &Listener{
			channel: "falldue_due", pollers: notifiedFunc(func(string) { woken++ }), log: slog.New(slog.NewTextHandler(&log, nil)),
			listen: func(ctx context.Context, _ string, wake func(string)) error {
				switch since := time.Since(begin); {
				case since < 150*time.Second:
					return errors.New("no such host")
				case since < 200*time.Second:
					wake("")
					wake("default")
					return errors.Join(retry.Pause(ctx, time.Minute), errors.New("connection reset"))
				}
				wake("")
				<-ctx.Done()
				return nil
			},
		}
		go func() { time.Sleep(time.Hour); cancel() }()
		l.Work(ctx)
		var got []string
		for line := range strings.Lines(log.String()) {
			_, text, _ := strings.Cut(line, "level=")
			got = append(got, strings.TrimSpace(text))
		}
		const failed = `WARN msg="falldue: cannot listen; the worker polls for tasks of other processes" error=`
		const again = `INFO msg="falldue: listening again"`
		want := []string{failed + `"no such host"`, failed + `"no such host"`, failed + `"no such host"`, again, failed + `"connection reset"`, again}
		if strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("logged\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		if woken != 3 {
			t.Errorf("woken %d times", woken)
		}
	})
}
