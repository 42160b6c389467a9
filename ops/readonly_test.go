package ops_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/ops"
)

// TestInspectorsOnlyRead: what an Ops does can be done in sessions that may not write,
// except on MariaDB to explain a claim, and on MySQL to explain a change.
func TestInspectorsOnlyRead(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		if engine == testdb.TiDB {
			t.Skip("it has no read-only transactions")
		}
		dsn := testdb.DSN(t, engine)
		open := func(dsn string) *sqlx.DB {
			db, err := testdb.OpenDSN(testdb.Drivers(engine)[0], dsn)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = db.Close() })
			return db
		}
		b := backlogIn(t, open(dsn))
		own := parse(t, "delay 30m")
		b.add("mail", 3, 1, time.Hour)
		b.add("report", 1, 1, time.Minute, falldue.EnqueueOptions{Policy: own})
		// All connections refuse writes, since one that refuses to lock is given up.
		separator := "?"
		if strings.Contains(dsn, "?") {
			separator = "&"
		}
		b.db = open(dsn + separator + map[string]string{
			testdb.Postgres: "default_transaction_read_only=on", testdb.SQLite: "_pragma=query_only(1)",
			testdb.MySQL: "transaction_read_only=1", testdb.MariaDB: "tx_read_only=1",
		}[engine])
		var err error
		if b.queue, err = falldue.New(b.db, falldue.Config{}); err != nil {
			t.Fatal(err)
		}
		i := b.ops(nil)
		if _, err := b.db.Exec("update falldue_tasks set kind = kind"); err == nil {
			t.Fatal("the session may write")
		}
		if list, err := i.Queues(t.Context()); err != nil || len(list) != 1 {
			t.Errorf("Queues: %+v, error %v", list, err)
		}
		if _, err := i.Overdue(t.Context(), 0); err != nil {
			t.Errorf("Overdue: error %v", err)
		}
		if p, err := i.Profile(t.Context()); err != nil || p.Tasks != 4 {
			t.Errorf("Profile: %+v, error %v", p, err)
		}
		explains := engine != testdb.MariaDB // which explains no FOR UPDATE there
		if list, err := i.Workers(t.Context()); err != nil || len(list) != 0 {
			t.Errorf("Workers: %+v, error %v", list, err)
		}
		if _, _, err := i.ProfileTime(t.Context()); err != nil {
			t.Errorf("ProfileTime: error %v", err)
		}
		if _, _, err := i.EstimateTasks(t.Context()); err != nil {
			t.Errorf("EstimateTasks: error %v", err)
		}
		for name, list := range b.findings(i) {
			for _, f := range list {
				if f.Level == ops.Unchecked && (explains || name != "claims") || f.Level == ops.Broken {
					t.Errorf("Diagnose: %s: %+v", name, f)
				}
			}
		}
		plans, err := i.Explain(t.Context(), "default")
		if err != nil || len(plans) == 0 {
			t.Errorf("Explain: %+v, error %v", plans, err)
		}
		for _, p := range plans {
			refused := !explains && !slices.Contains([]string{"sweep", "next_lane", "look"}, p.Statement) ||
				engine == testdb.MySQL && !slices.Contains([]string{"sweep", "next_lane", "look", "claim"}, p.Statement)
			if (p.Err != nil) != refused {
				t.Errorf("Explain: %q: error %v", p.Statement, p.Err)
			}
		}
		if w, err := i.Why(t.Context(), 1); err != nil || len(w.Conditions) == 0 {
			t.Errorf("Why: %+v, error %v", w, err)
		}
	})
}
