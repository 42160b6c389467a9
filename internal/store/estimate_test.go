package store

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/internal/testdb"
)

var estimatedTasks = flag.Int("tasks", 100_000, "number of tasks of TestEstimatesAreClose; docs/benchmarks/records.md has its numbers for 1,000,000")

func init() { fewPages, fewTasks = sampledPages, firstParts }

// fillSkewed stores n tasks: half of kinds that take turns, half of kinds whose tasks were
// enqueued one after the other. Each kind has half as many tasks as the one before it.
func fillSkewed(t *testing.T, s *Store, db *sqlx.DB, n int) {
	t.Helper()
	first := make([]Entry, 1024)
	for i := range first {
		kind := min(int(-math.Log2(1-rand.Float64())), 9)
		first[i] = Entry{Queue: "mixed", Kind: fmt.Sprintf("mixed%d", kind), Payload: `{"order": 42, "to": "somebody@example.com"}`}
	}
	for part := range slices.Chunk(first, 4) { // tasks that are stored together have one anchor
		if _, err := s.Enqueue(t.Context(), nil, part); err != nil {
			t.Fatal(err)
		}
	}
	more := func(queue, kind, state string, limit int) {
		t.Helper()
		db.MustExec(fmt.Sprintf(`insert into falldue_tasks (queue, kind, state, payload, updated_at, created_at)
			select %s, %s, %s, payload, updated_at, created_at from falldue_tasks order by id limit %d`, queue, kind, state, limit))
	}
	for have := len(first); have < n/2; have *= 2 {
		more("queue", "kind", "state", min(have, n/2-have))
	}
	for i, size := 0, n/4; size > 50; i, size = i+1, size/2 {
		more("'rows'", fmt.Sprintf("'row%d'", i), []string{"'open'", "'dead'", "'done'"}[i%3], size)
	}
}

// TestEstimatesAreClose compares estimates with counts. Groups of less than a hundredth of all
// tasks may differ more, and numbers that are not marked as estimates must not differ.
func TestEstimatesAreClose(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		db := testdb.Open(t, engine)
		s := migrated(t, db)
		allowed := 0.1
		if s.server.Caps.Catalog == dialect.InnoDBCatalog {
			allowed = 0.2 // InnoDB's numbers differ by up to 0.1, as measured
		}
		fillSkewed(t, s, db, *estimatedTasks)
		start := time.Now()
		exact, err := s.Counts(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		tookExact, tookEstimate, worst := time.Since(start), time.Hour, 0.0
		for range 3 {
			start = time.Now()
			list, err := s.EstimateCounts(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			tookEstimate = min(tookEstimate, time.Since(start))
			about := map[group]Count{}
			for _, c := range list {
				about[groupOf(c)] = c
			}
			for _, c := range exact {
				a := about[groupOf(c)]
				off := math.Abs(float64(a.Tasks-c.Tasks)) / float64(c.Tasks)
				if c.Tasks >= int64(*estimatedTasks/100) {
					worst = max(worst, off)
				}
				if !a.Estimated && off > 0 || off > allowed && c.Tasks >= int64(*estimatedTasks/100) {
					t.Errorf("%d tasks of kind %s are %s, and about %d are (estimated %v)", c.Tasks, c.Kind, c.State, a.Tasks, a.Estimated)
				}
			}
		}
		t.Logf("%s: %d tasks in %d groups, about: %v and at most %.1f %% off, exact: %v", engine, *estimatedTasks, len(exact), tookEstimate.Round(time.Millisecond), 100*worst, tookExact.Round(time.Millisecond))
	})
}

// TestEstimatesAcrossGaps: ids may be close together in many places that are far from each
// other, since each TiDB server takes 10⁸ ids whenever it starts.
func TestEstimatesAcrossGaps(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		db := testdb.Open(t, engine)
		s := migrated(t, db)
		if c := s.server.Caps.Catalog; c == dialect.PgCatalog || c == dialect.InnoDBCatalog {
			return // its estimates do not go by ids
		}
		for _, c := range []struct{ places, tasks, gap int }{
			{3, 20_000, 100_000_000}, {40, 2_000, 100_000_000}, {300, 100, 100_000_000}, {20, 3_000, 30_000},
		} {
			db.MustExec("delete from falldue_tasks")
			if _, err := s.Enqueue(t.Context(), nil, []Entry{{Queue: "default", Kind: "k", Payload: "{}"}}); err != nil {
				t.Fatal(err)
			}
			more := func(apart, want int) {
				var first, have int
				if err := db.QueryRow("select min(id), count(*) from falldue_tasks").Scan(&first, &have); err != nil {
					t.Fatal(err)
				}
				for all := have; all < want; all *= 2 {
					db.MustExec(fmt.Sprintf(`insert into falldue_tasks (id, queue, kind, payload, updated_at, created_at)
						select id + %d, queue, kind, payload, updated_at, created_at from falldue_tasks where id < %d`, all/have*apart, first+(want-all)/have*apart))
				}
			}
			more(1, c.tasks)
			more(c.gap, c.places*c.tasks)
			list, err := s.EstimateCounts(t.Context())
			if err != nil || len(list) != 1 {
				t.Fatalf("%+v: counted %+v, error %v", c, list, err)
			}
			if n := float64(c.places * c.tasks); math.Abs(float64(list[0].Tasks)-n) > 0.2*n {
				t.Errorf("%d places of %d tasks, %d apart: about %d are estimated", c.places, c.tasks, c.gap, list[0].Tasks)
			}
		}
	})
}

// TestEstimatesOfManyLanes: with more lanes than an estimate reads, the numbers come only from the
// sample, or are exact.
func TestEstimatesOfManyLanes(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		s := migrated(t, testdb.Open(t, engine))
		entries := make([]Entry, MaxBatch)
		for batch := range 3 {
			for i := range entries {
				entries[i] = Entry{Queue: "default", Kind: "k", Key: fmt.Sprint(batch, "-", i), Payload: "{}"}
			}
			if _, err := s.Enqueue(t.Context(), nil, entries); err != nil {
				t.Fatal(err)
			}
		}
		list, err := s.EstimateCounts(t.Context())
		if err != nil || len(list) != 1 || list[0].Tasks != 1500 || list[0].State != statements.StateOpen {
			t.Errorf("counted %+v, error %v", list, err)
		}
	})
}
