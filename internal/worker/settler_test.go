package worker

import (
	"context"
	"database/sql"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/internal/retry"
	"github.com/falldue/falldue/internal/store"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/jmoiron/sqlx"
)

// wait waits for a signal.
func wait(t *testing.T, c <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(testdb.Patience):
		t.Fatalf("waited in vain for %s", what)
	}
}

// TestPollersWaitForSettlers: a poller claims nothing while a batch waits to be settled,
// and continues after that.
func TestPollersWaitForSettlers(t *testing.T) {
	t.Parallel()
	w := idle(t, t.Context(), Config{})
	p := w.pollers.Of("default")
	for range store.MaxBatch {
		r := endedRun(w)
		if p.Room() == 0 {
			t.Fatalf("the poller waits for %d settlements", len(w.settler.In))
		}
		w.settler.In <- r
	}
	if n := p.Room(); n > 0 {
		t.Errorf("with %d settlements waiting the poller claims %d tasks", store.MaxBatch, n)
	}
	var ended sync.WaitGroup
	ended.Go(func() { w.settler.Work(t.Context()) })
	woken := make(chan struct{})
	go func() { p.Budget.Await(t.Context()); close(woken) }()
	wait(t, woken, "the poller to be woken")
	if p.Room() == 0 {
		t.Error("the poller was woken and still waits")
	}
	close(w.settler.In)
	ended.Wait()
}

// TestShutdownDoesNotWaitForDeadDatabase: Run returns soon after the shutdown timeout,
// even if leases last for a day.
func TestShutdownDoesNotWaitForDeadDatabase(t *testing.T) {
	t.Parallel()
	server, err := dialect.DefaultServer(dialect.Postgres)
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		db := sqlx.NewDb(sql.OpenDB(testdb.Dead{}), "dead")
		defer db.Close()
		s := store.New(db, server, store.Options{})
		ctx, stop := context.WithCancel(t.Context())
		w := idleOn(ctx, s, Config{Lease: 24 * time.Hour, ShutdownTimeout: 10 * time.Second})
		ended := make(chan time.Time, 1)
		go func() {
			_ = w.Run()
			ended <- time.Now()
		}()
		r := endedRun(w)
		w.claimed.Add(&r.Lease)
		w.settler.In <- r
		time.Sleep(time.Hour)
		stop()
		stopped := time.Now()
		if took := (<-ended).Sub(stopped); took > retry.StatementTimeout+w.ShutdownTimeout+retry.LastSettles {
			t.Errorf("Run ended %v after its context", took)
		}
		if n := w.claimed.Count(); n != 0 {
			t.Errorf("%d claims are still held", n)
		}
	})
}
