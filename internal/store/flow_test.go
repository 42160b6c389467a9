package store

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/internal/testdb"
)

// enqueueFlow enqueues a batch of n tasks, and a task that runs after them. It returns their ids.
func enqueueFlow(t *testing.T, s *Store, n int, on statements.OnDeath) (members []int64, waiter int64) {
	t.Helper()
	entries, flow := make([]Entry, n+1), Flow{Waiters: map[int]statements.OnDeath{n: on}}
	for i := range entries {
		entries[i] = Entry{Queue: "default", Kind: "k", Payload: "{}"}
		if i < n {
			flow.Edges = append(flow.Edges, FlowEdge{Member: i, Waiter: n})
		}
	}
	ids, err := s.EnqueueFlow(t.Context(), nil, entries, flow)
	if err != nil {
		t.Fatal(err)
	}
	return ids[:n], ids[n]
}

func wantFate(t *testing.T, s *Store, waiter int64, want Fate) {
	t.Helper()
	if list, err := s.Judge(t.Context(), []int64{waiter}); err != nil || len(list) != 1 || list[0].To != want {
		t.Errorf("the verdicts are %+v (error %v), want %d", list, err, want)
	}
}

// TestTheLastOfTwoToCommitIsSeen: the transactions that end the last two members each miss the other's
// end, so waiters must not be judged there.
func TestTheLastOfTwoToCommitIsSeen(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, engine string) {
		db := testdb.Open(t, engine)
		s := migrated(t, db)
		members, waiter := enqueueFlow(t, s, 2, statements.DeathWait)
		claims, err := s.Claim(t.Context(), ClaimParams{
			Queue: "default", Worker: "w", Lease: time.Hour, Limit: 2,
			Sources: []Source{{Lane: Lane{State: statements.StateOpen, Kind: "k"}, Running: statements.StateOpen}},
		})
		if err != nil || len(claims) != len(members) {
			t.Fatalf("claimed %d tasks, error %v", len(claims), err)
		}
		if !s.Server().Caps.LockRows {
			return // one transaction writes at a time
		}
		var commits []func() error
		for _, c := range claims {
			tx, err := db.BeginTx(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = tx.Rollback() })
			e := &Settlement{Member: true}
			e.Key, e.State = Key{TaskID: c.ID, Fence: c.Fence}, statements.StateDone
			if ok, err := s.SettleTx(t.Context(), tx, "w", e); err != nil || !ok {
				t.Fatalf("settled %t, error %v", ok, err)
			}
			commits = append(commits, tx.Commit)
		}
		for i, want := range []Fate{StaysBlocked, Opens} {
			if err := commits[i](); err != nil {
				t.Fatal(err)
			}
			wantFate(t, s, waiter, want)
		}
	})
}

// TestEdgesFollowTheirTasks: the check of all edges finds outcomes that were not recorded, and the edges
// of deleted tasks.
func TestEdgesFollowTheirTasks(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, engine string) {
		db := testdb.Open(t, engine)
		s := migrated(t, db)
		_, first := enqueueFlow(t, s, MaxBatch, statements.DeathWait) // so that there are two pages
		members, waiter := enqueueFlow(t, s, 3, statements.DeathRun)
		all := func() (waiters []int64, pages int) {
			t.Helper()
			for at := (EdgeKey{}); ; {
				last, list, err := s.CheckEdges(t.Context(), at)
				if err != nil {
					t.Fatal(err)
				}
				waiters, pages = append(waiters, list...), pages+1
				if at = last; at == (EdgeKey{}) {
					return waiters, pages
				}
			}
		}
		if waiters, pages := all(); len(waiters) > 0 || pages != 2 {
			t.Errorf("of %d pages %v are wrong", pages, waiters)
		}
		db.MustExec(fmt.Sprintf("delete from falldue_tasks where id = %d", members[0]))
		db.MustExec(fmt.Sprintf("update falldue_tasks set state = 'dead' where id = %d", members[1]))
		db.MustExec(fmt.Sprintf("update falldue_tasks set state = 'cancelled' where id = %d", members[2]))
		wantFate(t, s, waiter, StaysBlocked)
		if waiters, _ := all(); !slices.Equal(waiters, []int64{waiter, waiter, waiter}) {
			t.Errorf("corrected are edges of %v, want three of %d", waiters, waiter)
		}
		wantFate(t, s, waiter, Opens)
		if n, err := s.CountEdges(t.Context(), waiter); err != nil || n["deleted"] != 1 || n["dead"] != 1 || n["cancelled"] != 1 {
			t.Errorf("the counts are %v, error %v", n, err)
		}
		db.MustExec(fmt.Sprintf("delete from falldue_tasks where id in (%d, %d)", first, waiter))
		all()
		all() // the deleted edges have moved the pages
		var left int
		if err := db.Get(&left, "select count(*) from falldue_edges"); err != nil || left != 0 {
			t.Errorf("%d edges are left, error %v", left, err)
		}
		wantFate(t, s, waiter, IsForgotten)
		if _, err := s.EndWaiting(t.Context(), []int64{first, waiter}, IsForgotten); err != nil {
			t.Fatal(err)
		}
		if list, err := s.JudgePage(t.Context(), 0); err != nil || len(list) != 0 {
			t.Errorf("waiters are left: %+v, error %v", list, err)
		}
	})
}

// TestAWaiterOfNonsenseHoldsNoOtherUp: a person has edited rows of a flow. The task of these rows stays
// blocked, the error explains why, and other tasks are judged.
func TestAWaiterOfNonsenseHoldsNoOtherUp(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, engine string) {
		db := testdb.Open(t, engine)
		s := migrated(t, db)
		values := []string{"17", "-1"}
		if engine == testdb.SQLite { // which takes anything
			values = append(values, "'many'")
		}
		members, bad := enqueueFlow(t, s, 2, statements.DeathWait)
		others, good := enqueueFlow(t, s, 2, statements.DeathWait)
		for _, id := range slices.Concat(members, others) {
			db.MustExec(fmt.Sprintf("update falldue_tasks set state = 'done' where id = %d", id))
		}
		if engine == testdb.SQLite {
			db.MustExec(fmt.Sprintf("insert into falldue_edges (task_id, waiter) values (%d, 'nobody')", members[0]))
		}
		_, waiters, err := s.CheckEdges(t.Context(), EdgeKey{})
		if slices.Sort(waiters); !slices.Equal(slices.Compact(waiters), []int64{bad, good}) || (err != nil) != (engine == testdb.SQLite) {
			t.Errorf("corrected are the edges of %v, error %v", waiters, err)
		}
		for _, value := range values {
			db.MustExec(fmt.Sprintf("update falldue_flows set on_death = %s where task_id = %d", value, bad))
			list, err := s.JudgePage(t.Context(), 0)
			if err != nil || len(list) != 2 || list[0].To != StaysBlocked || list[0].Corrupt == nil || !strings.Contains(list[0].Corrupt.Error(), "on_death") || list[1].To != Opens || list[1].Corrupt != nil {
				t.Errorf("on_death = %s: the verdicts are %+v, error %v", value, list, err)
			}
			if ended, err := s.EndWaiting(t.Context(), []int64{bad}, Opens); err != nil || len(ended) != 0 {
				t.Errorf("on_death = %s: opened %v, error %v", value, ended, err)
			}
			if _, _, err := s.OnDeath(t.Context(), bad); err == nil {
				t.Errorf("on_death = %s: it is read", value)
			}
		}
	})
}
