package falldue

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/internal/store"
)

// stuck is a database whose driver returns from nothing, whatever happens to contexts
// and connections, until released is closed.
type stuck struct {
	driver.Conn
	released <-chan struct{}
}

func (s stuck) Connect(context.Context) (driver.Conn, error) { return &s, nil }
func (stuck) Driver() driver.Driver                          { return nil }

func (s *stuck) Close() error {
	<-s.released
	return nil
}

func (s *stuck) PrepareContext(context.Context, string) (driver.Stmt, error) {
	<-s.released
	return nil, errors.New("released")
}

func (s *stuck) ExecContext(context.Context, string, []driver.NamedValue) (driver.Result, error) {
	<-s.released
	return nil, errors.New("released")
}

// TestRunReturnsThoughNoStatementDoes: the connections of a worker with a day's lease
// and many tasks that have ended are silent, and the driver does not end one statement.
// Run returns nevertheless.
func TestRunReturnsThoughNoStatementDoes(t *testing.T) {
	t.Parallel()
	for _, engine := range []dialect.Name{dialect.Postgres, dialect.MySQL} {
		server, err := dialect.DefaultServer(engine)
		if err != nil {
			t.Fatal(err)
		}
		synctest.Test(t, func(t *testing.T) {
			released := make(chan struct{})
			db := sqlx.NewDb(sql.OpenDB(stuck{released: released}), "stuck")
			s := store.New(db, server, store.Options{})
			cfg := Config{
				Lease: time.Hour, ShutdownTimeout: 10 * time.Second, DoneRetention: time.Hour, DeadRetention: time.Hour,
				Logger: slog.New(slog.DiscardHandler),
			}.withDefaults()
			w := newWorker(cfg, s, newPolicyKeeper(s, events{cfg.Logger}), nil, nil)
			ctx, stop := context.WithCancel(t.Context())
			ended := make(chan time.Time, 1)
			go func() {
				w.run(ctx)
				ended <- time.Now()
			}()
			synctest.Wait()
			d := w.dispatchers[DefaultQueue]
			for range cap(w.settler.in) + 2*store.MaxBatch { // more than the settlers take
				r := &taskRun{runEnv: d.env, execution: execution{claim: &store.Claim{}}, lease: lease{until: time.Now().Add(cfg.Lease)}}
				w.leases.hold(r)
				d.runners.all.Go(func() { w.settler.in <- r })
			}
			time.Sleep(21 * time.Minute) // an extension waits too
			stop()
			stopped := time.Now()
			if took := (<-ended).Sub(stopped); took > cfg.ShutdownTimeout+15*time.Second {
				t.Errorf("%s: Run returned %v after its context had ended", engine, took)
			}
			close(released)
			_ = db.Close()
		})
	}
}

// TestLeasesEndThoughNoStatementDoes: a handler learns that its lease is over while the
// statement that would extend the lease hangs.
func TestLeasesEndThoughNoStatementDoes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		released := make(chan struct{})
		l := &leases{
			length: time.Minute, events: events{slog.New(slog.DiscardHandler)}, held: map[*taskRun]struct{}{},
			classify: func(error) dialect.Class { return dialect.Disconnected },
			extendRows: func(context.Context, string, time.Duration, []store.Key) (store.Unsettled, error) {
				<-released
				return store.Unsettled{}, errors.New("released")
			},
		}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { l.work(ctx); close(done) }()
		time.Sleep(50 * time.Second)                                     // in the middle of everything
		for _, length := range []time.Duration{l.length, l.length / 2} { // the second claim's answer took long
			handler, cancel := context.WithCancelCause(ctx)
			r := &taskRun{execution: execution{claim: &store.Claim{}}, lease: lease{until: time.Now().Add(length)}}
			r.lease.begin(cancel)
			l.hold(r)
			began := time.Now()
			<-handler.Done()
			if cause := context.Cause(handler); !errors.Is(cause, ErrLeaseLost) {
				t.Errorf("the cause is %v, want %v", cause, ErrLeaseLost)
			}
			if took := time.Since(began); took < length || took > length+time.Second {
				t.Errorf("a lease of %v ended after %v", length, took)
			}
		}
		close(released)
		stop()
		<-done
	})
}
