package systemtest

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/testdb"
)

// claimRefusals is a log handler that signals that the database refused each of several tasks.
type claimRefusals struct {
	slog.Handler
	seen chan struct{}
}

func (p claimRefusals) Enabled(context.Context, slog.Level) bool { return true }

func (p claimRefusals) Handle(_ context.Context, r slog.Record) error {
	if strings.HasPrefix(r.Message, "falldue: the database refuses the claims of some tasks") {
		p.seen <- struct{}{}
	}
	return nil
}

// TestWorkerContinuesAfterFailedCommits: the claims of a worker find tasks and then
// fail to commit. The worker goes on once commits succeed, and the tasks that it did
// not get do not count against its concurrency.
func TestWorkerContinuesAfterFailedCommits(t *testing.T) {
	dsn := testdb.DSN(t, testdb.SQLite) + "&_pragma=foreign_keys(1)"
	db, err := sqlx.Open("sqlite", dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	failed := claimRefusals{slog.DiscardHandler, make(chan struct{})}
	const handlers = 2
	q, err := falldue.New(db, falldue.Config{Concurrency: handlers, PollInterval: 10 * time.Millisecond, Logger: slog.New(failed)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), testdb.Patience)
	defer cancel()
	if err := q.Migrate(ctx); err != nil {
		t.Fatal(err)
	}
	// A constraint that is checked at the commit, and that claims violate.
	db.MustExec("create table parent (id integer primary key)")
	db.MustExec("create table child (id integer references parent deferrable initially deferred)")
	db.MustExec("create trigger violate after update on falldue_tasks begin insert into child values (1); end")

	kind := falldue.NewKind[int]("claimed", falldue.KindConfig{})
	ran := make(chan struct{}, handlers+1)
	falldue.Handle(q, kind, func(context.Context, falldue.Task[int]) error { ran <- struct{}{}; return nil })
	if _, err := kind.EnqueueMany(ctx, q, make([]int, handlers+1)); err != nil {
		t.Fatal(err)
	}
	running, stop := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- q.Run(running) }()
	select { // at least one claim of some tasks failed, and one of each
	case <-failed.seen:
	case <-ctx.Done():
		t.Fatal("the worker does not claim any more")
	}
	go func() { // a claim that has begun may still fail
		for {
			select {
			case <-failed.seen:
			case <-ctx.Done():
				return
			}
		}
	}()
	if _, err := db.ExecContext(ctx, "drop trigger violate"); err != nil {
		t.Fatal(err)
	}
	for range handlers + 1 {
		select {
		case <-ran:
		case <-ctx.Done():
			t.Fatal("the worker does not claim any more")
		}
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
