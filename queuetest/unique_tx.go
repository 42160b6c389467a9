package queuetest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/ops"
)

// inTx runs fn in a transaction that has written a row before.
func (f *fixture) inTx(ctx context.Context, fn func(falldue.Tx) error) error {
	tx, err := f.begin(ctx, nil)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, "insert into effects (task) values (1)")
	if err := errors.Join(err, fn(tx.Tx)); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

// inOldSnapshot runs fn with a transaction that has read before. Where the engine does not
// have the level, it is that of the engine.
func (f *fixture) inOldSnapshot(t *testing.T, level sql.IsolationLevel, fn func(*Transaction)) {
	t.Helper()
	tx, err := f.begin(t.Context(), &sql.TxOptions{Isolation: level})
	if err != nil {
		tx = f.mustBegin(t)
	}
	defer func() { _ = tx.Rollback() }()
	if _, err := tx.ExecContext(t.Context(), "select count(*) from falldue_policies"); err != nil {
		t.Fatal(err)
	}
	fn(tx)
}

// server returns the database's server.
func (f *fixture) server(t *testing.T) dialect.Server {
	t.Helper()
	server, err := dialect.Probe(t.Context(), f.db)
	if err != nil {
		t.Fatal(err)
	}
	return server
}

// inCluster reports whether the database is a cluster of MariaDB, in which the nodes lock rows apart.
func (f *fixture) inCluster() (is bool) {
	return f.db.Get(&is, "select @@wsrep_on") == nil && is // other databases have no such variable
}

var uniqueTxCases = []conformanceCase{
	inCallersTx("a unique task of a transaction that is rolled back holds no key, and one that commits keeps others out", func(t *testing.T, f *fixture) {
		q, k := f.queue(t, falldue.Config{}), falldue.NewKind[orderArgs]("unique.tx", falldue.KindConfig{})
		tx := f.mustBegin(t)
		if _, err := k.EnqueueTx(t.Context(), q, tx.Tx, orderArgs{}, byArgs); err != nil {
			t.Fatal(err)
		}
		if err := tx.Rollback(); err != nil {
			t.Fatal(err)
		}
		tx = f.mustBegin(t)
		a, err := k.EnqueueTx(t.Context(), q, tx.Tx, orderArgs{}, byArgs)
		if err != nil || a.Existed {
			t.Fatalf("after the rollback: %+v, %v", a, err)
		}
		again, err := k.EnqueueTx(t.Context(), q, tx.Tx, orderArgs{}, byArgs)
		if err != nil || again != (falldue.Receipt{ID: a.ID, Existed: true}) {
			t.Fatalf("in the same transaction: %+v, %v", again, err)
		}
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		wantExisting(t, "after the commit", a.ID, q, k, orderArgs{}, byArgs)
	}),
	inCallersTx("a transaction that began before an equal task was enqueued stores no other one, at any isolation level", func(t *testing.T, f *fixture) {
		server := f.server(t)
		if server.Caps.SingleWriter {
			t.Skip("others cannot write while a transaction reads, or it cannot write then")
		}
		q, k := f.queue(t, falldue.Config{}), falldue.NewKind[orderArgs]("unique.snapshot", falldue.KindConfig{})
		other := f.queueOn(t, f.open(t), falldue.Config{})
		for i, level := range []sql.IsolationLevel{sql.LevelReadCommitted, sql.LevelRepeatableRead, sql.LevelSerializable} {
			for _, u := range []falldue.Unique{{By: falldue.ByArgs()}, {By: falldue.ByArgs(), WhileWaiting: true}, {By: falldue.ByArgs(), For: time.Hour}, {By: falldue.ByArgs(), OnConflict: falldue.ConflictReplace}} {
				for _, before := range []bool{false, true} { // whether a task had the key before
					o := unique(u)
					o.Unique.By = falldue.ByKey(fmt.Sprint(i, u, before))
					if before {
						id := wantNew(t, "the task before", q, k, orderArgs{}, unique(falldue.Unique{By: o.Unique.By}))
						if err := q.Cancel(t.Context(), id); err != nil {
							t.Fatal(err)
						}
					}
					f.inOldSnapshot(t, level, func(tx *Transaction) {
						a := wantNew(t, "the task meanwhile", other, k, orderArgs{}, o)
						ctx, cancel := context.WithTimeout(t.Context(), waitTimeout)
						defer cancel()
						r, err := k.EnqueueTx(ctx, q, tx.Tx, orderArgs{}, o)
						if err == nil {
							err = tx.Commit()
						}
						// Where locks do less, and between nodes of a cluster, conflicts are refused at any level.
						mayConflict := level != sql.LevelReadCommitted || !server.Caps.SkipLocked || f.inCluster()
						if err != nil && (!mayConflict || server.Classify(err) != dialect.Contention) {
							t.Errorf("%+v at %v: %v", o.Unique, level, err)
						}
						if err == nil && r != (falldue.Receipt{ID: a, Existed: true}) {
							t.Errorf("%+v at %v: %+v, want the existing task %d", o.Unique, level, r, a)
						}
					})
				}
			}
		}
	}),
	inCallersTx("a handler whose transaction ends a unique task may enqueue the next one in it", func(t *testing.T, f *fixture) {
		q, k := f.queue(t, falldue.Config{}), falldue.NewKind[int]("unique.next", falldue.KindConfig{})
		f.db.MustExec("create table effects (task bigint not null)")
		o := unique(falldue.Unique{By: falldue.ByKind()})
		receipts := make(chan [2]falldue.Receipt, 10)
		falldue.Handle(q, k, func(ctx context.Context, task falldue.Task[int]) error {
			if task.Args == 2 {
				return nil
			}
			return f.inTx(ctx, func(tx falldue.Tx) error {
				before, err := k.EnqueueTx(ctx, q, tx, task.Args+1, o)
				if err != nil {
					return err
				}
				if err := task.DoneTx(ctx, tx); err != nil {
					return err
				}
				after, err := k.EnqueueTx(ctx, q, tx, task.Args+1, o)
				receipts <- [2]falldue.Receipt{before, after}
				return err
			})
		})
		startWorker(t, q)
		a := wantNew(t, "the first", q, k, 1, o)
		r := receive(t, receipts, "the handler")
		if want := (falldue.Receipt{ID: a, Existed: true}); r[0] != want || r[1].Existed || r[1].ID == a {
			t.Errorf("before DoneTx %+v, after it %+v; the running task is %d", r[0], r[1], a)
		}
		waitForDeletion(t, q, r[1].ID)
	}),
	inCallersTx("a waiting task does not start before the commit of what skipped another one for it", func(t *testing.T, f *fixture) {
		q, k := f.queue(t, falldue.Config{}), falldue.NewKind[orderArgs]("unique.held", falldue.KindConfig{})
		o := unique(falldue.Unique{By: falldue.ByArgs(), WhileWaiting: true})
		next := falldue.NewKind[orderArgs]("unique.beside", falldue.KindConfig{Priority: 1})
		ran := make(chan string, 10)
		falldue.Handle(q, k, func(context.Context, falldue.Task[orderArgs]) error { ran <- "held"; return nil })
		falldue.Handle(q, next, func(context.Context, falldue.Task[orderArgs]) error { ran <- "beside"; return nil })
		a := wantNew(t, "the first", q, k, orderArgs{}, o)
		f.db.MustExec("create table effects (task bigint not null)")
		tx := f.mustBegin(t)
		defer func() { _ = tx.Rollback() }()
		if _, err := tx.ExecContext(t.Context(), "insert into effects (task) values (1)"); err != nil {
			t.Fatal(err)
		}
		r, err := k.EnqueueTx(t.Context(), q, tx.Tx, orderArgs{}, o)
		if err != nil || r != (falldue.Receipt{ID: a, Existed: true}) {
			t.Fatalf("in the transaction: %+v, %v", r, err)
		}
		startWorker(t, q)
		server := f.server(t)
		knows := server.Name() == q.Engine() // or the queue may not know that the server locks rows
		if knows && server.Caps.LockRows {   // where one transaction writes at a time, nothing runs before its end
			enqueue(t, q, next, orderArgs{})
			if got := receive(t, ran, "the sibling"); got != "beside" {
				// In a cluster whose nodes lock rows apart, the claim on another node wins, and the
				// transaction must fail.
				if err := tx.Commit(); err == nil {
					t.Error("the task ran before the transaction was committed")
				}
				return
			}
		}
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		if got := receive(t, ran, "the held task"); got != "held" {
			t.Errorf("%s ran", got)
		}
	}),
	{"never do two unfinished tasks have one unique key, whoever enqueues them", func(t *testing.T, f *fixture) {
		k := falldue.NewKind[int]("unique.race", falldue.KindConfig{})
		const enqueuers, rounds, keys = 8, 60, 5
		var mu sync.Mutex
		running := map[int][]int64{}
		done := 0
		worker := f.queueOn(t, f.open(t), falldue.Config{})
		falldue.Handle(worker, k, func(_ context.Context, task falldue.Task[int]) error {
			mu.Lock()
			defer mu.Unlock()
			running[task.Args] = append(running[task.Args], task.ID)
			done++
			return nil
		})
		startWorker(t, worker)
		q := f.queue(t, falldue.Config{})
		var enqueuing sync.WaitGroup
		created := make([][]int64, enqueuers)
		for n := range enqueuers {
			other := f.queueOn(t, f.open(t), falldue.Config{})
			enqueuing.Go(func() {
				for i := range rounds {
					r, err := k.Enqueue(t.Context(), other, (i+n)%keys, byArgs)
					if err != nil {
						t.Errorf("enqueue: %v", err)
						return
					}
					if !r.Existed {
						created[n] = append(created[n], r.ID)
					}
				}
			})
		}
		ended := make(chan struct{})
		go func() { enqueuing.Wait(); close(ended) }()
		for end := false; !end; {
			select {
			case <-ended:
				end = true
			default:
			}
			list, err := listed(ops.New(q).Tasks(t.Context(), ops.Filter{}, ops.ListOptions{Limit: 1000}))
			if err != nil {
				t.Fatal(err)
			}
			unfinished := map[string]int64{}
			for _, info := range list {
				if other, ok := unfinished[string(info.Payload)]; ok {
					t.Fatalf("tasks %d and %d are unfinished, both with the key %s", other, info.ID, info.Payload)
				}
				unfinished[string(info.Payload)] = info.ID
			}
		}
		all := slices.Concat(created...)
		for _, id := range all {
			waitForDeletion(t, q, id)
		}
		mu.Lock()
		defer mu.Unlock()
		if done != len(all) {
			t.Errorf("%d tasks ran, and %d were new", done, len(all))
		}
	}},
}
