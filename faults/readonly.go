package faults

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/go-sql-driver/mysql"
	"github.com/jmoiron/sqlx"

	"github.com/falldue/falldue/internal/testdb"
)

// workerUser is the user that processes connect as to MySQL and MariaDB. An
// administrator could write to a server that is read-only.
const workerUser = "falldue_faults"

// createWorker creates that user, with all rights in one database.
func createWorker(ctx context.Context, db *sqlx.DB, database string) error {
	for _, stmt := range []string{
		"create user if not exists " + workerUser,
		"grant all privileges on " + database + ".* to " + workerUser,
	} {
		if _, err := db.ExecContext(ctx, stmt); err != nil {
			return err
		}
	}
	return nil
}

// asWorker returns a DSN for that user.
func asWorker(dsn string) (string, error) {
	cfg, err := mysql.ParseDSN(dsn)
	if err != nil {
		return "", err
	}
	cfg.User, cfg.Passwd = workerUser, ""
	return cfg.FormatDSN(), nil
}

// hasWorker reports whether processes connect to the database as that user. Vitess creates no users.
func (d *database) hasWorker() bool {
	return d.vitess == nil && (d.engine == testdb.MySQL || d.engine == testdb.MariaDB)
}

// canRefuse reports whether the run can make the database read-only without harm to
// others. On PostgreSQL that is one database, on MySQL and MariaDB the whole server.
func canRefuse(r *Run) bool {
	return r.db.engine == testdb.Postgres || r.db.hasWorker() && r.db.restart != nil
}

// refuseWrites makes the server read-only for a while.
func refuseWrites(ctx context.Context, r *Run, dice *rand.Rand) error {
	refuse, allow := "alter database "+r.db.name+" set default_transaction_read_only = on", "alter database "+r.db.name+" reset default_transaction_read_only"
	if r.db.engine != testdb.Postgres {
		refuse, allow = "set global read_only = on", "set global read_only = off"
	}
	set := func(ctx context.Context, stmt string, session *int64) error {
		return r.onConn(ctx, func(ctx context.Context, conn *sqlx.Conn) error {
			if err := conn.GetContext(ctx, session, selectSession(r.db.engine)); err != nil {
				return err
			}
			if r.db.engine == testdb.Postgres {
				// The admin's own sessions are read-only too, unless they set otherwise.
				if _, err := conn.ExecContext(ctx, "set default_transaction_read_only = off"); err != nil {
					return err
				}
			}
			_, err := conn.ExecContext(ctx, stmt)
			if err != nil || r.db.engine != testdb.Postgres {
				return err
			}
			return endSessions(ctx, r)
		})
	}
	var session, other int64
	err := set(ctx, refuse, &session)
	r.wait(ctx, span(dice, lease))
	return errors.Join(err, r.insist(ctx, func(ctx context.Context) error {
		// The driver may have given up while the statement waits in the server, and then takes effect.
		if err := endSession(ctx, r, session); err != nil {
			return err
		}
		return set(ctx, allow, &other)
	}))
}

// selectSession returns a statement that selects the number of its session.
func selectSession(engine string) string {
	if engine == testdb.Postgres {
		return "select pg_backend_pid()"
	}
	return "select connection_id()"
}

// endSession ends a session, and fails as long as the session has not ended. 0 is no session.
func endSession(ctx context.Context, r *Run, session int64) error {
	end, count := fmt.Sprintf("kill %d", session), fmt.Sprintf("select count(*) from information_schema.processlist where id = %d", session)
	if r.db.engine == testdb.Postgres {
		end, count = fmt.Sprintf("select pg_terminate_backend(%d)", session), fmt.Sprintf("select count(*) from pg_stat_activity where pid = %d", session)
	}
	var sessions int
	if err := r.admin.GetContext(ctx, &sessions, count); err != nil || sessions == 0 {
		return err
	}
	_, err := r.admin.ExecContext(ctx, end) // an error may mean that the session has just ended
	return errors.Join(fmt.Errorf("session %d has not ended", session), err)
}
