package ops_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/ops"
)

// byID orders receipts by their tasks' ids: those of a call may be in another order on TiDB.
func byID(a, b falldue.Receipt) int { return cmp.Compare(a.ID, b.ID) }

// referTo makes a table that refers to tasks, which cannot be deleted then.
func referTo(db *sqlx.DB, ids ...int64) {
	db.MustExec("create table falldue_referring (task_id bigint not null, foreign key (task_id) references falldue_tasks (id))")
	for _, id := range ids {
		db.MustExec(db.Rebind("insert into falldue_referring values (?)"), id)
	}
}

// TestRefusedTasksDoNotStopAChangeOfMany: a foreign key keeps some of many tasks from being
// deleted. All others are, and the report names those.
func TestRefusedTasksDoNotStopAChangeOfMany(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, engine string) {
		db := testdb.Open(t, engine)
		q, err := falldue.New(db, falldue.Config{})
		if err != nil {
			t.Fatal(err)
		}
		if err := q.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		kind := falldue.NewKind[int]("k", falldue.KindConfig{})
		receipts, err := kind.EnqueueMany(t.Context(), q, make([]int, 1100))
		if err != nil {
			t.Fatal(err)
		}
		slices.SortFunc(receipts, byID)
		bad := []int64{receipts[0].ID, receipts[3].ID, receipts[499].ID, receipts[500].ID, receipts[1099].ID}
		if engine == testdb.SQLite {
			db.SetMaxOpenConns(1)
			db.MustExec("pragma foreign_keys = on")
		}
		referTo(db, bad...)
		report, err := ops.New(q).DeleteMany(t.Context(), ops.Filter{Kind: "k"})
		if err != nil || report.Changed != 1095 || report.Failed != 5 || report.Left != 0 || !report.Complete {
			t.Errorf("the report is %+v, error %v; want 1095 deleted and 5 failed", report, err)
		}
		var failed []int64
		for _, f := range report.Failures {
			failed = append(failed, f.ID)
			if f.Err == nil || !strings.Contains(f.Err.Error(), "task ") {
				t.Errorf("the failure of task %d is %v", f.ID, f.Err)
			}
		}
		left, err := listed(ops.New(q).Tasks(t.Context(), ops.Filter{}))
		if err != nil || len(left) != len(bad) || !slices.Equal(failed, bad) {
			t.Errorf("%d tasks are left, error %v, and %v failed; want %v", len(left), err, failed, bad)
		}
	})
}

// TestLockedTasksDoNotStopAChangeOfMany: another transaction has locked a task. The others
// are changed without waiting for it.
func TestLockedTasksDoNotStopAChangeOfMany(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, engine string) {
		db := testdb.Open(t, engine)
		if s, err := dialect.Probe(t.Context(), db); err != nil || !s.Caps.SkipLocked {
			t.Skipf("it cannot skip locked rows (error %v)", err)
		}
		q, err := falldue.New(db, falldue.Config{})
		if err != nil {
			t.Fatal(err)
		}
		if err := q.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		kind := falldue.NewKind[int]("k", falldue.KindConfig{})
		receipts, err := kind.EnqueueMany(t.Context(), q, make([]int, 20))
		if err != nil {
			t.Fatal(err)
		}
		holder := db.MustBegin()
		defer func() { _ = holder.Rollback() }()
		holder.MustExec(db.Rebind("select id from falldue_tasks where id = ? for update"), receipts[7].ID)
		report, err := ops.New(q).CancelMany(t.Context(), ops.Filter{Kind: "k"})
		if err != nil || report.Changed != 19 || report.Failed != 1 || report.Failures[0].ID != receipts[7].ID || !report.Complete {
			t.Errorf("the report is %+v, error %v; want 19 cancelled, and task %d failed", report, err, receipts[7].ID)
		}
	})
}

// TestFinishedTasksHideNoPhase: the tasks of each unfinished phase are on the first page, although more
// finished ones come before them than a page looks at.
func TestFinishedTasksHideNoPhase(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, engine string) {
		db := testdb.Open(t, engine)
		q, err := falldue.New(db, falldue.Config{})
		if err != nil {
			t.Fatal(err)
		}
		if err := q.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		kind, other := falldue.NewKind[int]("k", falldue.KindConfig{}), falldue.NewKind[int]("other", falldue.KindConfig{Queue: "other"})
		want := map[falldue.Phase][]int64{}
		enqueue := func(n int, k falldue.Kind[int], phase falldue.Phase, set string, opts falldue.EnqueueOptions) {
			receipts, err := k.EnqueueMany(t.Context(), q, make([]int, n), opts)
			if err != nil {
				t.Fatal(err)
			}
			slices.SortFunc(receipts, byID)
			if set != "" {
				if _, err := db.ExecContext(t.Context(), fmt.Sprintf("update falldue_tasks set %s where id between %d and %d", set, receipts[0].ID, receipts[n-1].ID)); err != nil {
					t.Fatal(err)
				}
			}
			for _, r := range receipts {
				want[phase] = append(want[phase], r.ID)
			}
		}
		later := falldue.EnqueueOptions{Delay: time.Hour}
		for _, done := range []int{10_001, 1} {
			enqueue(done, kind, falldue.PhaseDone, "state = 'done'", falldue.EnqueueOptions{})
			enqueue(2, other, falldue.PhaseRunning, "claimed_by = 'worker', attempts = 1", later)
			enqueue(2, kind, falldue.PhaseScheduled, "", later)
			enqueue(2, kind, falldue.PhaseSnoozed, "state = 'snoozed'", later)
			enqueue(2, kind, falldue.PhaseDue, "", falldue.EnqueueOptions{})
			enqueue(2, other, falldue.PhaseBackingOff, "attempts = 9", falldue.EnqueueOptions{})
		}
		delete(want, falldue.PhaseDone)
		o, err := ops.New(q).WithPolicies(map[string]backoff.Policy{"other": backoff.Constant(time.Hour)})
		if err != nil {
			t.Fatal(err)
		}
		for phase, ids := range want {
			for _, newest := range []bool{false, true} {
				page, err := o.Tasks(t.Context(), ops.Filter{Phase: phase}, ops.ListOptions{Newest: newest})
				var got []int64
				for _, task := range page.Tasks {
					got = append(got, task.ID)
				}
				if newest {
					slices.Reverse(got)
				}
				if err != nil || !slices.Equal(got, ids) || page.Bounded || page.More {
					t.Errorf("%s: the page has the tasks %v, want %v; error %v, bounded %v", phase, got, ids, err, page.Bounded)
				}
			}
		}
	})
}

// TestTasksReportsThatItHasLookedAtEnough: a payload among more tasks than a page looks at is
// found on the next one.
func TestTasksReportsThatItHasLookedAtEnough(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, engine string) {
		q, err := falldue.New(testdb.Open(t, engine), falldue.Config{})
		if err != nil {
			t.Fatal(err)
		}
		if err := q.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		args := make([]int, 10_500)
		args[10_100] = 42
		kind := falldue.NewKind[int]("k", falldue.KindConfig{})
		receipts, err := kind.EnqueueMany(t.Context(), q, args)
		if err != nil {
			t.Fatal(err)
		}
		slices.SortFunc(receipts, byID)
		filter := ops.Filter{Kind: "k", Match: "42", Phase: falldue.PhaseDue}
		first, err := ops.New(q).Tasks(t.Context(), filter)
		if err != nil || len(first.Tasks) != 0 || !first.Bounded || !first.More || first.Next != receipts[9_999].ID {
			t.Fatalf("the first page is %+v, error %v; want none of the tasks up to %d", first, err, receipts[9_999].ID)
		}
		second, err := ops.New(q).Tasks(t.Context(), filter, ops.ListOptions{After: first.Next})
		if err != nil || len(second.Tasks) != 1 || second.Tasks[0].ID != receipts[10_100].ID || second.Bounded || second.More {
			t.Errorf("the second page is %+v, error %v; want task %d", second, err, receipts[10_100].ID)
		}
	})
}
