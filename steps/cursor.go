package steps

import (
	"context"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/steplog"
	"github.com/falldue/falldue/internal/storable"
	"github.com/falldue/falldue/internal/store"
)

// Cursor records how far a step has come: an ID, an offset, or any other value that can be stored as JSON of up to
// Config.MaxPayload bytes.
type Cursor[C any] struct {
	step *steplog.Step
	name string
	at   C
}

// DoFrom runs a step that saves how far it has come: fn begins at [Cursor.At], and saves the cursor while it
// works, for example after each batch. If fn returns an error, or its worker dies, the next attempt
// continues from the last saved cursor. DoFrom is otherwise like [Do].
func DoFrom[C, T, A any](ctx context.Context, t falldue.Task[A], name string, fn func(ctx context.Context, c *Cursor[C]) (T, error)) (T, error) {
	return do[T](ctx, t, name, fn == nil, func(step *steplog.Step) (json []byte, err error) {
		c := &Cursor[C]{step: step, name: name}
		if saved := step.Cursor(); saved != nil {
			if c.at, err = storable.Decoder[C]()(saved); err != nil {
				return nil, invalid("the saved cursor of step %q does not decode into %T: %w", name, c.at, err)
			}
		}
		return finish(ctx, step, name, func() (T, error) { return fn(ctx, c) })
	})
}

// At returns the cursor that was saved last, in this run or an earlier one, or the zero value if none was saved.
func (c *Cursor[C]) At() C { return c.at }

// Save saves the cursor, and waits until it is stored. If the worker has begun to stop by then, Save returns an error
// that wraps [falldue.ErrStopping]. A handler that returns that error releases its task, which is due
// immediately: the next worker continues from the cursor, and no attempt is used up. [Do] lists the
// other errors.
func (c *Cursor[C]) Save(ctx context.Context, at C) error {
	if err := c.save(ctx, nil, at); err != nil {
		return err
	}
	return c.Stopping()
}

// SaveTx saves the cursor in a transaction on the queue's database, with the writes of a batch: both commit together,
// so that each batch is written exactly once. Commit the transaction, and then call [Cursor.Stopping], because SaveTx
// does not check whether the worker stops. If the commit fails, return its error from the handler: [Cursor.At] does not
// return to the earlier cursor in this run.
func (c *Cursor[C]) SaveTx(ctx context.Context, tx falldue.Tx, at C) error {
	if err := store.CheckTx(tx); err != nil {
		return invalid("step %q: %w", c.name, err)
	}
	return c.save(ctx, tx, at)
}

// Stopping returns an error that wraps [falldue.ErrStopping] if the worker has begun to stop, and nil otherwise.
func (c *Cursor[C]) Stopping() error { return explain(c.step.Stopping()) }

func (c *Cursor[C]) save(ctx context.Context, tx falldue.Tx, at C) error {
	json, err := encode("cursor", c.name, at)
	if err != nil {
		return err
	}
	if err := c.step.Save(ctx, tx, json); err != nil {
		return explain(err)
	}
	c.at = at
	return nil
}
