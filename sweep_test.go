package falldue

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/sqlgen"
)

// TestSweepsDoNotStaySlow: MariaDB opened the table when it was empty, and would
// read every index entry of it until it is opened again.
func TestSweepsDoNotStaySlow(t *testing.T) {
	t.Parallel()
	db := testdb.Open(t, testdb.MariaDB)
	q, err := New(db, Config{})
	if err != nil {
		t.Fatal(err)
	}
	if err := q.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := q.store.sweep(t.Context(), DefaultQueue); err != nil { // which opens the table
		t.Fatal(err)
	}
	db.MustExec(`insert into falldue_tasks (queue, kind, attempts, updated_at, created_at, payload)
		select 'default', concat('k', seq % 8), seq % 25, utc_timestamp(6), utc_timestamp(6), '{}' from seq_1_to_100000`)
	stmt := sqlgen.Sweep(q.store.server, q.store.tables)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		var plan struct {
			Extra string `db:"Extra"`
		}
		if err := db.Unsafe().GetContext(ctx, &plan, "explain "+stmt.SQL, stmt.Bind(sqlgen.Values{"queue": DefaultQueue}, nil)...); err != nil {
			t.Fatalf("the last plan was %q: %v", plan.Extra, err)
		}
		if strings.Contains(plan.Extra, "group-by") {
			return
		}
		q.store.recounts = time.Time{}
		if _, err := q.store.sweep(ctx, DefaultQueue); err != nil {
			t.Fatalf("the last plan was %q: %v", plan.Extra, err)
		}
	}
}
