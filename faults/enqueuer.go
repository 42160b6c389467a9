package faults

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/falldue/falldue"
)

// enqueuer is a process that enqueues jobs, and records which of them the database
// has acknowledged.
type enqueuer struct {
	Role
	db        *sqlx.DB
	queue     *falldue.Queue
	history   *History
	kinds     kinds
	dice      *rand.Rand
	made      int // keys
	group     group
	graphs    []graph
	amendable []amendable
}

// Enqueue enqueues as many jobs as the role says, or until ctx ends. It does not retry
// an enqueue that fails: that one may have stored its jobs.
func (r Role) Enqueue(ctx context.Context) error {
	history, err := OpenHistory(r.Folder, r.Name)
	if err != nil {
		return err
	}
	defer history.Close()
	db, q, err := r.open(ctx, nil)
	if err != nil {
		return unless(ctx, err)
	}
	defer db.Close()
	kinds, err := newKinds(r.Policy)
	if err != nil {
		return err
	}
	e := &enqueuer{Role: r, db: db, queue: q, history: history, kinds: kinds, dice: rand.New(rand.NewPCG(r.Seed, 1))}
	for ctx.Err() == nil && (r.Tasks == 0 || e.made < r.Tasks) {
		err := e.enqueue(ctx)
		if err != nil && r.Tasks > 0 {
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(r.Pause):
		}
	}
	return nil
}

// enqueue enqueues a random number of jobs in one of four ways: by itself, in
// a transaction that is committed, in one that is rolled back, or as a flow.
func (e *enqueuer) enqueue(ctx context.Context) error {
	n := 1 + e.dice.IntN(e.Batch)
	if e.dice.IntN(manyEvery) == 0 {
		n = 501 + e.dice.IntN(100) // PostgreSQL copies so many; the others need several statements
	}
	if e.Tasks > 0 {
		n = min(e.Batch, e.Tasks-e.made)
	}
	switch {
	case e.Limited && e.dice.IntN(changeEvery) == 0:
		return e.changeGroup(ctx)
	case len(e.graphs) > 0 && e.dice.IntN(retryEvery) == 0:
		return e.retryGraph(ctx)
	case e.Limited && e.dice.IntN(amendEvery) == 0:
		return e.amend(ctx)
	case e.Limited && e.dice.IntN(mendEvery) == 0:
		_, err := retryHalting(ctx, e.queue)
		return err
	case e.Limited && e.dice.IntN(3) == 0:
		return e.uniquely(ctx)
	}
	params, keys := make([]falldue.EnqueueParams, n), make([]string, n)
	for i := range params {
		e.made++
		keys[i] = keyOf(e.Name, e.made)
		kind, job, opts := e.kinds.plain, Job{Key: keys[i]}, falldue.EnqueueOptions{}
		switch {
		case e.made%transactionalEvery == 0:
			kind = e.kinds.transactional
		case e.Limited && e.made%limitedEvery == 0:
			kind, opts = e.kinds.limited, falldue.EnqueueOptions{Key: limitedKey(e.made)}
		case e.Limited && e.made%ratedEvery == 0:
			kind, opts = e.kinds.rated, falldue.EnqueueOptions{Key: ratedKey(e.made)}
		case e.Limited && e.made%orderedEvery == 0:
			kind, opts = e.kinds.ordered, falldue.EnqueueOptions{Key: sequenceKey(e.Name, e.made)}
		case e.Limited && e.made%haltingEvery == 0:
			kind, opts = e.kinds.halting, falldue.EnqueueOptions{Key: sequenceKey(e.Name, e.made)}
		case e.Limited && e.made%stubbornEvery == 0:
			kind = e.kinds.stubborn
		case e.Limited && e.made%steppedEvery == 0:
			kind = e.kinds.stepped
		case e.Limited && e.made%gatheredEvery == 0:
			kind = e.kinds.gathered
		case e.Limited && e.made%expiringEvery == 0:
			kind = e.kinds.expiring
			opts = job.expire(e.made)
		case e.Limited && e.made%repeatedEvery == 0:
			kind = e.kinds.repeated
		}
		params[i] = kind.Params(job, opts)
	}
	switch e.dice.IntN(4) {
	case 0:
		return e.inTransaction(ctx, params, keys, true)
	case 1:
		if e.Tasks == 0 {
			return e.inTransaction(ctx, params, keys, false)
		}
	case 2:
		switch {
		case n > 1 && n <= e.Batch && e.Limited && e.dice.IntN(3) > 0:
			return e.asGraph(ctx, params, keys)
		case n > 1:
			return e.asBatch(ctx, params, keys)
		}
	}
	receipts, err := e.queue.EnqueueMany(ctx, params...)
	if err != nil {
		return err
	}
	e.write(Acknowledged, keys, idsOf(receipts))
	return nil
}

// One enqueue in manyEvery is of more than 500 jobs.
const manyEvery = 1000

// One job in transactionalEvery ends itself in a transaction.
const transactionalEvery = 10

func (e *enqueuer) inTransaction(ctx context.Context, params []falldue.EnqueueParams, keys []string, commit bool) error {
	tx, err := begin(ctx, e.db)
	if err != nil {
		return err
	}
	defer tx.close()
	receipts, err := e.queue.EnqueueManyTx(ctx, tx, params...)
	if err != nil {
		return err
	}
	if !commit {
		if err := tx.Rollback(); err != nil {
			return err
		}
		e.write(Undone, keys, idsOf(receipts))
		return nil
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	e.write(Acknowledged, keys, idsOf(receipts))
	return nil
}

func idsOf(receipts []falldue.Receipt) []int64 {
	ids := make([]int64, len(receipts))
	for i, r := range receipts {
		ids[i] = r.ID
	}
	return ids
}

func (e *enqueuer) write(what string, keys []string, ids []int64) {
	events := make([]Event, len(keys))
	for i := range keys {
		events[i] = Event{What: what, Key: keys[i], ID: ids[i]}
	}
	e.history.Write(events...)
}
