package systemtest

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/internal/testdb"
)

// TestWrongClock enqueues and runs a worker in a synctest bubble, where it is the year
// 2000 and time jumps ahead whenever all goroutines wait. The database is outside the
// bubble. Only its clock may decide when tasks run.
func TestWrongClock(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		if engine == testdb.SQLite {
			// SQLite runs inside the process and uses its clock.
			t.Skip("SQLite has no clock of its own")
		}
		dsn, driver := testdb.DSN(t, engine), testdb.Drivers(engine)[0]
		synctest.Test(t, func(t *testing.T) {
			if year := time.Now().UTC().Year(); year != 2000 {
				t.Fatalf("the bubble is in the year %d", year)
			}
			db, err := sqlx.Open(driver, dsn)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = db.Close() }()
			wrongClock(t, db)
		})
	})
}

func wrongClock(t *testing.T, db *sqlx.DB) {
	const delay = 300 * time.Millisecond
	q, err := falldue.New(db, falldue.Config{PollInterval: 10 * time.Millisecond, DoneRetention: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	if err := q.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	kind := falldue.NewKind[string]("clock", falldue.KindConfig{Policy: backoff.Constant(delay)})
	type event struct {
		name string
		at   time.Time // by the database's clock
		info falldue.TaskInfo
	}
	events := make(chan event, 10)
	falldue.Handle(q, kind, func(ctx context.Context, task falldue.Task[string]) error {
		info, err := q.Task(ctx, task.ID)
		if err != nil {
			return err
		}
		events <- event{task.Args, info.AttemptedAt, info}
		if task.Args == "retried" && task.Attempt == 1 {
			return errors.New("once")
		}
		return nil
	})
	delayed, err := kind.Enqueue(t.Context(), q, "delayed", falldue.EnqueueOptions{Delay: delay})
	if err != nil {
		t.Fatal(err)
	}
	before, err := q.Task(t.Context(), delayed.ID)
	if err != nil {
		t.Fatal(err)
	}
	if wait := before.UpdatedAt.Sub(before.CreatedAt); wait != delay {
		t.Errorf("a delay of %v is stored as %v", delay, wait)
	}
	if year := before.Now.Year(); year < 2020 {
		t.Errorf("the database is in the year %d as well", year)
	}
	if _, err := kind.Enqueue(t.Context(), q, "retried"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- q.Run(ctx) }()
	var failed time.Time
	for range 3 {
		e := <-events
		switch {
		case e.name == "delayed":
			if e.at.Before(before.UpdatedAt) {
				t.Errorf("the delayed task ran %v early", before.UpdatedAt.Sub(e.at))
			}
		case failed.IsZero():
			failed = e.at
		case e.at.Sub(failed) < delay:
			t.Errorf("the retry came after %v, want %v at the least", e.at.Sub(failed), delay)
		}
		if e.info.Fence > 2 {
			t.Errorf("%s was claimed %d times", e.name, e.info.Fence)
		}
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
