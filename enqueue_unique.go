package falldue

import "context"

// EnqueueUnique is like [Kind.Enqueue], and reports whether the task existed. It is unique
// by opts.Unique, or by the zero [Unique] if that is nil.
func (k Kind[A]) EnqueueUnique(ctx context.Context, q *Queue, args A, opts *EnqueueOptions) (Receipt, error) {
	return firstReceipt(q.EnqueueUnique(ctx, k.Params(args, opts)))
}

// EnqueueUniqueTx is like [Kind.EnqueueTx], and reports whether the task existed, as
// [Kind.EnqueueUnique] does. See [Queue.EnqueueUniqueTx] for who waits for tx.
func (k Kind[A]) EnqueueUniqueTx(ctx context.Context, q *Queue, tx Tx, args A, opts *EnqueueOptions) (Receipt, error) {
	return firstReceipt(q.EnqueueUniqueTx(ctx, tx, k.Params(args, opts)))
}

func firstReceipt(list []Receipt, err error) (Receipt, error) {
	if err != nil {
		return Receipt{}, err
	}
	return list[0], nil
}

// EnqueueUnique is like [Queue.EnqueueMany], and reports which of the tasks existed. Each is
// unique by its options, or by the zero [Unique] if these say nothing. Of several tasks of
// the call with one unique key only the first is stored; with [ConflictReplace] it has the
// payload, the meta, the key and the time of the last.
func (q *Queue) EnqueueUnique(ctx context.Context, params ...EnqueueParams) ([]Receipt, error) {
	return q.enqueueUnique(ctx, nil, params)
}

// EnqueueUniqueTx is like [Queue.EnqueueUnique] but stores the tasks inside tx, as
// [Kind.EnqueueTx] does.
//
// If the task is stored, other enqueues with its unique key wait until tx ends, and so do
// enqueues that find the key's holder finished. With [WhileWaiting] the holder does not
// start before tx ends, and sees what tx has written. After an [ExistsError] tx can go on:
// none of the tasks is in it. After any other error roll back.
func (q *Queue) EnqueueUniqueTx(ctx context.Context, tx Tx, params ...EnqueueParams) ([]Receipt, error) {
	if err := checkTx(tx); err != nil {
		return nil, err
	}
	return q.enqueueUnique(ctx, tx, params)
}

func (q *Queue) enqueueUnique(ctx context.Context, tx Tx, params []EnqueueParams) ([]Receipt, error) {
	unique := func(i int) EnqueueParams {
		p := params[i]
		if p.opts.Unique == nil {
			p.opts.Unique = &Unique{}
		}
		return p
	}
	fn := q.storeParams
	if around := q.aroundEnqueue.Load(); around != nil {
		fn = *around
	}
	return throughMiddleware(ctx, tx, fn, len(params), unique)
}
