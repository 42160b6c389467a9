package systemtest

import (
	"strconv"
	"sync"
	"testing"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/testdb"
)

// TestIDsOfConcurrentBatches: some servers return only the first id of a batch. The
// others must follow it, whatever else is enqueued meanwhile.
func TestIDsOfConcurrentBatches(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		db := testdb.Open(t, engine)
		q, err := falldue.New(db, falldue.Config{})
		if err != nil {
			t.Fatal(err)
		}
		if err := q.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		kind := falldue.NewKind[int]("numbered", falldue.KindConfig{})
		var mu sync.Mutex
		want := map[int64]string{}
		var group sync.WaitGroup
		for from := 0; from < 4_000_000; from += 1_000_000 {
			group.Go(func() {
				next := from
				for _, n := range []int{1, 500, 3, 64, 200, 1, 32} {
					args := make([]int, n)
					for i := range args {
						args[i], next = next, next+1
					}
					receipts, err := kind.EnqueueMany(t.Context(), q, args)
					if err != nil {
						t.Error(err)
						return
					}
					mu.Lock()
					for i, r := range receipts {
						want[r.ID] = strconv.Itoa(args[i])
					}
					mu.Unlock()
				}
			})
		}
		group.Wait()
		var rows []struct {
			ID      int64
			Payload string
		}
		if err := db.Select(&rows, "select id, payload from falldue_tasks"); err != nil {
			t.Fatal(err)
		}
		if len(rows) != len(want) {
			t.Errorf("%d tasks are stored, and %d ids were returned", len(rows), len(want))
		}
		for _, r := range rows {
			if want[r.ID] != r.Payload {
				t.Fatalf("task %d has the payload %s; its id was returned for %q", r.ID, r.Payload, want[r.ID])
			}
		}
	})
}
