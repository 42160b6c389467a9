package store

import (
	"database/sql"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/internal/testdb"
)

// TestSettleOfTasksThatEndDifferently: each task ends by its own settlement, whichever tasks share a
// statement.
func TestSettleOfTasksThatEndDifferently(t *testing.T) {
	t.Parallel()
	text := func(s string) sql.Null[string] { return sql.Null[string]{V: s, Valid: s != ""} }
	ends := map[string]Settlement{
		"deleted":    {Settlement: statements.Settlement{State: statements.StateDone}},
		"kept":       {Settlement: statements.Settlement{State: statements.StateDone}, RetainDone: true},
		"answered":   {Settlement: statements.Settlement{State: statements.StateDone, Result: text(`[1]`)}, RetainDone: true},
		"refused":    {Settlement: statements.Settlement{State: statements.StateOpen, Error: text("refused")}},
		"broken":     {Settlement: statements.Settlement{State: statements.StateOpen, Error: text("ünïcödé " + strings.Repeat("ä", 3000))}},
		"not tried":  {Settlement: statements.Settlement{State: statements.StateOpen, Error: text("refused"), AttemptsDelta: -1}},
		"waits":      {Settlement: statements.Settlement{State: statements.StateOpen, Error: text("refused"), Wait: int64(time.Hour / time.Microsecond)}},
		"dead":       {Settlement: statements.Settlement{State: statements.StateDead, Error: text("refused")}},
		"no message": {Settlement: statements.Settlement{State: statements.StateOpen}},
	}
	type end struct {
		State, Error, Result string
		Attempts             int
		Later                bool
	}
	testdb.Each(t, func(t *testing.T, engine string) {
		db := testdb.Open(t, engine)
		s := migrated(t, db)
		for _, batch := range []map[string]int{
			{"refused": 4}, {"deleted": 2, "refused": 1}, {"refused": 6, "broken": 1, "not tried": 1, "waits": 1, "dead": 1, "no message": 1},
			{"deleted": 3, "kept": 3, "answered": 2, "broken": 1}, {"kept": 2, "refused": 2}, {"waits": 30, "refused": 20, "deleted": 5}, {"answered": 50, "kept": 30},
			{"deleted": 30, "kept": 40, "waits": 20, "broken": 19}, {"refused": 40, "dead": 41},
		} {
			db.MustExec("delete from falldue_tasks")
			db.MustExec("delete from falldue_attempts")
			var names []string
			var entries []Entry
			for name, n := range batch {
				for range n {
					names, entries = append(names, name), append(entries, Entry{Queue: "default", Kind: "k", Payload: "1"})
				}
			}
			rand.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
			ids, err := s.Enqueue(t.Context(), nil, entries)
			if err != nil {
				t.Fatal(err)
			}
			lane := Lane{State: statements.StateOpen, Kind: "k"}
			claims, err := s.Claim(t.Context(), ClaimParams{Queue: "default", Worker: "w", Lease: time.Minute, Limit: 500, Sources: []Source{{Lane: lane, Running: statements.StateOpen}}})
			if err != nil || len(claims) != len(ids) {
				t.Fatalf("claimed %d of %d tasks, error %v", len(claims), len(ids), err)
			}
			want, got := map[int64]end{}, map[int64]end{}
			var settled []*Settlement
			var lost []int64
			for i, c := range claims {
				e := ends[names[i]]
				e.Key = Key{TaskID: c.ID, Fence: c.Fence}
				if e.Error.Valid && rand.N(2) == 0 {
					e.Records = []Record{{Key: e.Key, Attempt: 1, Outcome: statements.OutcomeRetried, Worker: "w", Error: e.Error.V}}
				}
				if len(claims) > 4 && rand.N(10) == 0 { // another worker has claimed it since
					e.Fence--
					lost = append(lost, c.ID)
					want[c.ID] = end{State: statements.StateOpen, Attempts: 1}
				} else if !e.deletes() {
					want[c.ID] = end{e.State, e.Error.V, e.Result.V, 1 + e.AttemptsDelta, e.Wait > 0}
				}
				settled = append(settled, &e)
			}
			left, err := s.Settle(t.Context(), "w", settled)
			slices.Sort(left.Lost)
			slices.Sort(lost)
			if err != nil || !slices.Equal(left.Lost, lost) || len(left.Locked) > 0 {
				t.Fatalf("left %+v, error %v; lost are %d", left, err, lost)
			}
			list, err := s.list(t.Context(), statements.ListParams{}, statements.Values{"after": int64(0), "limit": 500})
			if err != nil {
				t.Fatal(err)
			}
			for _, task := range list {
				got[task.ID] = end{task.State, task.LastError.V, string(task.Result), task.Attempts, task.Updated > task.Now+int64(10*time.Minute/time.Microsecond)}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("of %v (-want +got)\n%s", fmt.Sprint(batch), diff)
			}
		}
	})
}
