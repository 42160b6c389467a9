package faults

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"strconv"

	"github.com/jmoiron/sqlx"

	"github.com/falldue/falldue"
)

// uniqueKeys is the number of unique keys of a run.
const uniqueKeys = 100

// EnqueueUnique enqueues jobs with few unique keys until ctx ends, by themselves and in
// transactions.
func (r Role) EnqueueUnique(ctx context.Context) error {
	db, q, err := r.open(ctx)
	if err != nil {
		return unless(ctx, err)
	}
	defer db.Close()
	kinds, err := newKinds(r.Policy)
	if err != nil {
		return err
	}
	dice := rand.New(rand.NewPCG(r.Seed, rand.Uint64()))
	for ctx.Err() == nil {
		key := strconv.Itoa(dice.IntN(uniqueKeys))
		params := []falldue.EnqueueParams{kinds.plain.Params(Job{Key: key}, nil)}
		if dice.IntN(4) == 0 {
			params = append(params, kinds.plain.Params(Job{Key: strconv.Itoa(dice.IntN(uniqueKeys))}, nil))
		}
		if dice.IntN(2) == 0 {
			err = inTransaction(ctx, db, q, params)
		} else {
			_, err = q.EnqueueUnique(ctx, params...)
		}
		if err != nil && ctx.Err() == nil {
			slog.Warn("cannot enqueue", "process", r.Name, "error", err) // a deadlock, for example
		}
	}
	return nil
}

func inTransaction(ctx context.Context, db *sqlx.DB, q *falldue.Queue, params []falldue.EnqueueParams) error {
	tx, err := begin(ctx, db)
	if err != nil {
		return err
	}
	defer tx.close()
	if _, err := q.EnqueueUniqueTx(ctx, tx, params...); err != nil {
		return err
	}
	return tx.Commit()
}
