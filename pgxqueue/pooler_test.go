package pgxqueue_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/pgnotify"
	"github.com/falldue/falldue/pgxqueue"
)

// records is a log whose messages are received.
type records chan string

func (r records) Enabled(context.Context, slog.Level) bool { return true }
func (r records) WithAttrs([]slog.Attr) slog.Handler       { return r }
func (r records) WithGroup(string) slog.Handler            { return r }
func (r records) Handle(_ context.Context, record slog.Record) error {
	r <- record.Message
	return nil
}

// TestQueuesBehindAPooler: a queue whose pool leads to a pooler in transaction mode does
// not try to listen through it, says so once, and runs tasks of other processes. With a
// direct DSN for pgnotify it has a notice of each transaction of such a process.
func TestQueuesBehindAPooler(t *testing.T) {
	t.Parallel()
	dsn := testdb.DSN(t, testdb.Postgres)
	pooled := testdb.StartPgBouncer(t, "transaction").Through(dsn) + "&" + testdb.InOneStep[testdb.PgxPool]
	for name, direct := range map[string]bool{"without Listen": false, "with a direct DSN": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			log, queue := make(records, 100), map[bool]string{true: "direct", false: "pooled"}[direct]
			cfg := falldue.Config{Logger: slog.New(log)}
			listens := make(chan struct{}, 100)
			if direct {
				cfg.PollInterval = time.Hour
				listen := pgnotify.DSN(dsn)
				cfg.Notifications.Listen = func(ctx context.Context, channel string, wake func(string)) error {
					return listen(ctx, channel, func(notice string) {
						wake(notice)
						listens <- struct{}{}
					})
				}
			}
			cfg.Queues = map[string]falldue.QueueConfig{queue: {Concurrency: 1}}
			_, worker := open(t, pooled, 4, cfg)
			pool, producer := open(t, pooled, 4, falldue.Config{})
			kind := falldue.NewKind[int]("k", falldue.KindConfig{Queue: queue})
			ran := make(chan int, 10)
			falldue.Handle(worker, kind, func(_ context.Context, task falldue.Task[int]) error { ran <- task.Args; return nil })
			stop := start(t, worker)
			if direct {
				receive(t, listens, "it to listen")
			}
			for i := range 3 {
				tx, err := pool.Begin(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if _, err := kind.EnqueueTx(t.Context(), producer, pgxqueue.Tx(tx), i); err != nil {
					t.Fatal(err)
				}
				if err := tx.Commit(t.Context()); err != nil {
					t.Fatal(err)
				}
				if direct {
					receive(t, listens, "a notice")
				}
				if got := receive(t, ran, "a task"); got != i {
					t.Errorf("task %d ran, want %d", got, i)
				}
			}
			stop()
			said := 0
			for len(log) > 0 {
				if message := <-log; strings.Contains(message, "does not listen behind a pooler") {
					said++
				} else if strings.Contains(message, "cannot listen") {
					t.Errorf("the worker tried to listen: %s", message)
				}
			}
			if want := map[bool]int{false: 1, true: 0}[direct]; said != want {
				t.Errorf("it said %d times that it does not listen, want %d", said, want)
			}
		})
	}
}
