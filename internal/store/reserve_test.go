package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/falldue/falldue/dialect"
)

// away is a database that refuses connections.
type away struct{ asked int }

func (a *away) Connect(context.Context) (driver.Conn, error) {
	a.asked++
	return nil, errors.New("connection refused")
}

func (a *away) Driver() driver.Driver { return nil }

// TestReserveAsksADatabaseThatIsAwayOnceASecond: the reserve does not ask again immediately.
func TestReserveAsksADatabaseThatIsAwayOnceASecond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var a away
		db := sql.OpenDB(&a)
		defer db.Close()
		db.SetMaxOpenConns(10)
		server, err := dialect.DefaultServer(dialect.Postgres)
		if err != nil {
			t.Fatal(err)
		}
		release := New(sqlx.NewDb(db, "postgres"), server, Options{}).Reserve()
		time.Sleep(time.Minute)
		release()
		if a.asked < 55 || a.asked > 65 {
			t.Errorf("in a minute it asked for a connection %d times, want about 60", a.asked)
		}
	})
}
