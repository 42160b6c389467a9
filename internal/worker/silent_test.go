package worker

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/internal/run"
	"github.com/falldue/falldue/internal/store"
	"github.com/jmoiron/sqlx"
)

// stuck is a database whose driver returns from no call, whatever happens to contexts
// and connections, until released is closed.
type stuck struct {
	driver.Conn
	released <-chan struct{}
}

func (s stuck) Connect(context.Context) (driver.Conn, error) { return &s, nil }

// TestRunReturnsThoughNoStatementDoes: a worker has a lease of a day, many ended runs and silent
// connections, and the driver returns from no statement. Run returns nevertheless.
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
			ctx, stop := context.WithCancel(t.Context())
			w := idleOn(ctx, s, Config{Lease: time.Hour, ShutdownTimeout: 10 * time.Second, OthersRetention: run.Retention{Done: time.Hour, Dead: time.Hour, Cancelled: time.Hour}})
			ended := make(chan time.Time, 1)
			go func() {
				_ = w.Run()
				ended <- time.Now()
			}()
			synctest.Wait()
			d := w.dispatchers["default"]
			for range cap(w.settler.In) + 2*store.MaxBatch { // more than the settlers take
				r := endedRun(w)
				w.claimed.Add(&r.Lease)
				d.Runners.All.Go(func() { w.settler.In <- r })
			}
			time.Sleep(21 * time.Minute) // an extension waits too
			stop()
			stopped := time.Now()
			if took := (<-ended).Sub(stopped); took > w.ShutdownTimeout+15*time.Second {
				t.Errorf("%s: Run returned %v after its context had ended", engine, took)
			}
			close(released)
			_ = db.Close()
		})
	}
}

func (stuck) Driver() driver.Driver { return nil }

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
