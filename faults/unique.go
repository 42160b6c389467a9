package faults

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strconv"

	"github.com/falldue/falldue"
)

// uniqueKeys is the number of unique keys of a run.
const uniqueKeys = 100

// uniqueParams returns a plain job of which one alone may be unfinished.
func (k kinds) uniqueParams(key string, dice *rand.Rand) falldue.EnqueueParams {
	job := Job{Key: key, Unique: strconv.Itoa(dice.IntN(uniqueKeys))}
	return k.plain.Params(job, &falldue.EnqueueOptions{Unique: &falldue.Unique{By: falldue.ByFields("unique")}})
}

// uniquely enqueues one or two jobs with unique keys, by themselves or in a transaction.
func (e *enqueuer) uniquely(ctx context.Context) error {
	var params []falldue.EnqueueParams
	var keys []string
	for range 1 + e.dice.IntN(2) {
		e.made++
		keys = append(keys, keyOf(e.Name, e.made))
		params = append(params, e.kinds.uniqueParams(keys[len(keys)-1], e.dice))
	}
	var receipts []falldue.Receipt
	var err error
	if e.dice.IntN(2) == 0 {
		receipts, err = e.queue.EnqueueUnique(ctx, params...)
	} else {
		receipts, err = e.uniquelyInTransaction(ctx, params)
	}
	if err != nil {
		return err
	}
	for i, r := range receipts {
		if !r.Existed {
			e.write(Acknowledged, keys[i:i+1], []int64{r.ID})
		}
	}
	return nil
}

func (e *enqueuer) uniquelyInTransaction(ctx context.Context, params []falldue.EnqueueParams) ([]falldue.Receipt, error) {
	tx, err := begin(ctx, e.db)
	if err != nil {
		return nil, err
	}
	defer tx.close()
	receipts, err := e.queue.EnqueueUniqueTx(ctx, tx, params...)
	if err != nil {
		return nil, err
	}
	return receipts, cmp.Or(tx.Commit(), ctx.Err()) // as in the enqueuer
}

// EnqueueUnique enqueues jobs with few unique keys until ctx ends, and nothing else.
func (r Role) EnqueueUnique(ctx context.Context) error {
	history, err := OpenHistory(r.Folder, r.Name)
	if err != nil {
		return err
	}
	defer history.Close()
	db, q, err := r.open(ctx)
	if err != nil {
		return unless(ctx, err)
	}
	defer db.Close()
	kinds, err := newKinds(r.Policy)
	if err != nil {
		return err
	}
	e := &enqueuer{Role: r, db: db, queue: q, history: history, kinds: kinds, dice: rand.New(rand.NewPCG(r.Seed, rand.Uint64()))}
	for ctx.Err() == nil {
		if err := e.uniquely(ctx); err != nil && ctx.Err() == nil {
			slog.Warn("cannot enqueue", "process", r.Name, "error", err) // a deadlock, for example
		}
	}
	return nil
}

// holdersAtOnce returns the tasks that were stored before another one had ended that held
// their unique key.
func holdersAtOnce(table []Row) (list []finding) {
	holders := map[string][]Row{}
	for _, r := range table {
		if r.Unique != "" {
			holders[r.Unique] = append(holders[r.Unique], r)
		}
	}
	for unique, rows := range holders {
		slices.SortFunc(rows, func(a, b Row) int {
			return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), a.EndedAt.Compare(b.EndedAt))
		})
		for i, next := range rows[1:] {
			if holder := rows[i]; next.CreatedAt.Before(holder.EndedAt) {
				list = append(list, finding{next.Key, fmt.Sprintf("it was stored at %v, before task %s with unique key %s ended at %v", next.CreatedAt, holder.Key, unique, holder.EndedAt)})
			}
		}
	}
	return list
}
