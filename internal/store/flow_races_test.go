package store

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/internal/testdb"
)

func plainEntry() Entry { return Entry{Queue: "default", Kind: "k", Payload: "{}"} }

func begin(t *testing.T, db *sqlx.DB) *sqlx.Tx {
	t.Helper()
	tx, err := db.BeginTxx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback() })
	return tx
}

func act(t *testing.T, s *Store, a Action, ids []int64) {
	t.Helper()
	if acted, err := s.Act(t.Context(), ActParams{Action: a, IDs: ids, Wait: true}); err != nil || len(acted.Done) != len(ids) {
		t.Fatalf("acted on %v, error %v", acted.Done, err)
	}
}

func TestDoneMemberStaysDoneWhenItIsDeleted(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, engine string) {
		db := testdb.Open(t, engine)
		s := migrated(t, db)
		members, waiter := enqueueFlow(t, s, 2, statements.DeathWait)
		db.MustExec(fmt.Sprintf("update falldue_tasks set state = 'done' where id = %d", members[0]))
		db.MustExec(fmt.Sprintf("update falldue_edges set outcome = 'done' where task_id = %d", members[0]))
		act(t, s, ActDelete, members[:1])
		wantFate(t, s, waiter, StaysBlocked)
	})
}

// TestOldVerdictIsNotCarriedOut: another worker has cancelled the waiter, and a person has
// retried it, since it was judged.
func TestOldVerdictIsNotCarriedOut(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, engine string) {
		s := migrated(t, testdb.Open(t, engine))
		ids, err := s.EnqueueFlow(t.Context(), nil, []Entry{plainEntry(), plainEntry(), plainEntry()}, Flow{
			Waiters: map[int]statements.OnDeath{1: statements.DeathCancel, 2: statements.DeathRun}, Edges: []FlowEdge{{0, 1}, {1, 2}},
		})
		if err != nil {
			t.Fatal(err)
		}
		act(t, s, ActCancel, ids[:1])
		wantFate(t, s, ids[1], IsCancelled)
		for i, want := range []int{1, 0} {
			if ended, err := s.EndWaiting(t.Context(), ids[1:2], IsCancelled); err != nil || len(ended) != want {
				t.Fatalf("ended %v, error %v, want %d", ended, err, want)
			}
			if i == 0 {
				act(t, s, ActRetry, ids[1:2])
			}
		}
		wantFate(t, s, ids[2], StaysBlocked) // its member is open
	})
}

// TestBlockedTaskIsNotPicked: a session that reads uncommitted rows saw the task open, in the
// middle of the enqueue that blocked it.
func TestBlockedTaskIsNotPicked(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, engine string) {
		s := migrated(t, testdb.Open(t, engine))
		members, waiter := enqueueFlow(t, s, 1, statements.DeathWait)
		from := Source{Lane: statements.Lane{State: statements.StateOpen, Kind: "k"}}
		list, err := s.Candidates(t.Context(), "default", from, math.MinInt64, 10)
		if err != nil || len(list) != 1 {
			t.Fatalf("candidates %v, error %v", list, err)
		}
		list = append(list, Candidate{Key: Key{TaskID: waiter}, Anchor: list[0].Anchor})
		result, err := s.ClaimKeys(t.Context(), ClaimParams{Queue: "default", Worker: "w", Lease: time.Minute, Limit: 10, Sources: []Source{from}}, list)
		claims := result.Claims
		if err != nil || len(claims) != 1 || claims[0].ID != members[0] {
			t.Errorf("%d claims, error %v, want one of task %d", len(claims), err, members[0])
		}
	})
}

// TestSettleOfALostClaimEndsNoMember: a lost claim ends no member, even if the handler commits although
// DoneTx failed.
func TestSettleOfALostClaimEndsNoMember(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, engine string) {
		db := testdb.Open(t, engine)
		s := migrated(t, db)
		members, waiter := enqueueFlow(t, s, 1, statements.DeathWait)
		tx, e := begin(t, db), &Settlement{Member: true}
		e.Key, e.State = Key{TaskID: members[0], Fence: 7}, statements.StateDone
		if ok, err := s.SettleTx(t.Context(), tx, "w", e); ok || err != nil {
			t.Fatalf("settled %t, error %v", ok, err)
		}
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		wantFate(t, s, waiter, StaysBlocked)
	})
}

func TestNothingIsStoredBesideATaskThatHasEnded(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, engine string) {
		db := testdb.Open(t, engine)
		s := migrated(t, db)
		tx := begin(t, db)
		if _, err := s.EnqueueFlow(t.Context(), tx, []Entry{plainEntry()}, Flow{Sibling: 12345}); !errors.Is(err, ErrNotFound) {
			t.Errorf("the error is %v, want ErrNotFound", err)
		}
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		var n int
		if err := db.Get(&n, "select count(*) from falldue_tasks"); err != nil || n != 0 {
			t.Errorf("%d tasks are stored, error %v", n, err)
		}
	})
}

// TestMemberDoesNotEndWhileOthersAreAddedBesideIt: the end of the member waits for the transaction.
func TestMemberDoesNotEndWhileOthersAreAddedBesideIt(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, engine string) {
		db := testdb.Open(t, engine)
		s := migrated(t, db)
		if !s.Server().Caps.LockRows {
			return // one transaction writes at a time
		}
		members, waiter := enqueueFlow(t, s, 1, statements.DeathRun)
		tx := begin(t, db)
		if _, err := s.EnqueueFlow(t.Context(), tx, []Entry{plainEntry()}, Flow{Sibling: members[0]}); err != nil {
			t.Fatal(err)
		}
		soon, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		if acted, err := s.Act(soon, ActParams{Action: ActCancel, IDs: members, Wait: true}); err == nil {
			t.Errorf("ended meanwhile: %v", acted.Done)
		}
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		act(t, s, ActCancel, members)
		wantFate(t, s, waiter, StaysBlocked)
	})
}

// TestVerdictIsJudgedAgain: a verdict may come from a session that read uncommitted rows.
func TestVerdictIsJudgedAgain(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, engine string) {
		s := migrated(t, testdb.Open(t, engine))
		_, waiter := enqueueFlow(t, s, 1, statements.DeathWait)
		for _, to := range []Fate{Opens, IsCancelled, IsForgotten} {
			if ended, err := s.EndWaiting(t.Context(), []int64{waiter}, to); err != nil || len(ended) != 0 {
				t.Errorf("ended %v, error %v, want nothing", ended, err)
			}
		}
		wantFate(t, s, waiter, StaysBlocked)
	})
}

func TestLockedWaiterHoldsNoOtherUp(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, engine string) {
		db := testdb.Open(t, engine)
		s := migrated(t, db)
		if !s.Server().Caps.SkipLocked {
			return
		}
		_, one := enqueueFlow(t, s, 1, statements.DeathWait)
		_, other := enqueueFlow(t, s, 1, statements.DeathWait)
		db.MustExec("update falldue_edges set outcome = 'done'")
		tx := begin(t, db)
		if _, err := tx.ExecContext(t.Context(), fmt.Sprintf("update falldue_tasks set priority = 1 where id = %d", one)); err != nil {
			t.Fatal(err)
		}
		if ended, err := s.EndWaiting(t.Context(), []int64{one, other}, Opens); err != nil || len(ended) != 1 || ended[0] != other {
			t.Errorf("ended %v, error %v, want %d", ended, err, other)
		}
	})
}

func TestRefusedEdgeHoldsNoOtherUp(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, engine string) {
		db := testdb.Open(t, engine)
		s := migrated(t, db)
		refused, _ := enqueueFlow(t, s, 1, statements.DeathRun)
		members, waiter := enqueueFlow(t, s, 1, statements.DeathRun)
		switch engine {
		case testdb.SQLite:
			db.MustExec(fmt.Sprintf("create trigger refuse before update on falldue_edges when new.task_id = %d begin select raise(abort, 'no'); end", refused[0]))
		case testdb.Postgres:
			db.MustExec(fmt.Sprintf("create function refuse() returns trigger language plpgsql as $$ begin if new.task_id = %d then raise exception 'no'; end if; return new; end $$", refused[0]))
			db.MustExec("create trigger refuse before update on falldue_edges for each row execute function refuse()")
		case testdb.TiDB: // has no triggers
			return
		default:
			db.MustExec(fmt.Sprintf("create trigger refuse before update on falldue_edges for each row begin if new.task_id = %d then signal sqlstate '45000' set message_text = 'no'; end if; end", refused[0]))
		}
		db.MustExec(fmt.Sprintf("delete from falldue_tasks where id in (%d, %d)", refused[0], members[0]))
		if _, waiters, err := s.CheckEdges(t.Context(), EdgeKey{}); err == nil || len(waiters) != 1 || waiters[0] != waiter {
			t.Errorf("corrected are the edges of %v, error %v", waiters, err)
		}
		wantFate(t, s, waiter, Opens)
	})
}

// TestMembersOfATaskThatIsThereAreKept: a run may report its task as gone although it has lost its lease.
func TestMembersOfATaskThatIsThereAreKept(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, engine string) {
		s := migrated(t, testdb.Open(t, engine))
		_, waiter := enqueueFlow(t, s, 2, statements.DeathWait)
		if err := s.ForgetMembers(t.Context(), []int64{waiter}); err != nil {
			t.Fatal(err)
		}
		if n, err := s.CountEdges(t.Context(), waiter); err != nil || n[""] != 2 {
			t.Errorf("the counts are %v, error %v", n, err)
		}
	})
}
