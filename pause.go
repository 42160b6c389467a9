package falldue

import (
	"context"
	"slices"
	"time"

	"github.com/falldue/falldue/internal/claim"
	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/internal/storable"
	"github.com/falldue/falldue/internal/store"
)

// Note explains a change to other people. It is stored with the change.
type Note struct {
	// Who is the author of the change, in up to 255 bytes, and Why is the reason, in up to 16 KiB.
	Who, Why string
}

// PauseOptions are the settings of [Queue.Pause].
type PauseOptions struct {
	// Until is when the pause ends automatically, by the database's clock. It must be later than now. Defaults to the zero
	// time: never.
	Until time.Time
	// Note is stored with the pause.
	Note
}

// Pause stops all workers from starting the tasks of a subject until the subject is resumed. Workers read the pause
// within two seconds. From then on they claim no such tasks, and release claimed tasks that have not started. Running
// handlers continue. The pause is stored in the database, and is in effect for workers that start later. A second
// Pause of the same subject replaces the first. New tasks can be enqueued in the meantime.
//
// A paused task waits as if no worker ran: time counts for its policy, and a task that falls due during the pause
// starts when the subject is resumed.
//
// Pass options at most once. The error wraps [ErrInvalid] for a subject without a field or with an invalid name, for
// an end in the past, and for texts that are too long. After an error, an earlier pause of the subject stays in
// effect.
func (q *Queue) Pause(ctx context.Context, s Subject, opts ...PauseOptions) error {
	o, err := oneOf(opts)
	if err != nil {
		return err
	}
	return q.change(ctx, s, o.Until, store.Change{What: statements.ChangePause, Who: o.Who, Why: o.Why})
}

// changeEnd returns the end of a change as it is stored; 0 is never.
func changeEnd(until time.Time) (int64, error) {
	if until.IsZero() {
		return 0, nil
	}
	ends := until.UnixMicro()
	if ends < claim.FirstAnchor || ends > claim.LastAnchor {
		return 0, invalid("Until %v: must be from 1970-01-02 to the year 9100", until)
	}
	return ends, nil
}

// checkEnd refuses a change that ends in the past, by the database's clock: such a change would end the one in effect.
// Only [Queue.Resume] and package ops do that.
func (q *Queue) checkEnd(ctx context.Context, ends int64) error {
	if ends == 0 {
		return nil
	}
	now, err := q.store.Now(ctx)
	if err != nil {
		return err
	}
	if at := store.Time(ends); !at.After(now) {
		return invalid("Until %v is in the past: must be after %v", at, now)
	}
	return nil
}

// Resume ends the pause of a subject. Workers claim its tasks again within two seconds, unless a pause of another
// subject includes them. It is no error to resume a subject that is not paused. Pass a note at most once. Errors are
// as for [Queue.Pause].
func (q *Queue) Resume(ctx context.Context, s Subject, notes ...Note) error {
	n, err := oneOf(notes)
	if err != nil {
		return err
	}
	return q.change(ctx, s, time.Time{}, store.Change{What: statements.ChangeResume, Who: n.Who, Why: n.Why})
}

// change stores a change of a subject, which ends at a time or, if that is zero, never. It makes
// the worker of this process read it.
func (q *Queue) change(ctx context.Context, s Subject, until time.Time, c store.Change) (err error) {
	if c.Ends, err = changeEnd(until); err != nil {
		return err
	}
	if err := s.err(); err != nil {
		return err
	}
	n, err := Note{c.Who, c.Why}.stored()
	if err != nil {
		return err
	}
	c.Who, c.Why = n.Who, n.Why
	if err := q.checkEnd(ctx, c.Ends); err != nil {
		return err
	}
	c.Subject = s.String()
	if err := q.store.PutChange(ctx, c); err != nil {
		return err
	}
	q.readChanges()
	return nil
}

// stored returns the note as it is stored.
func (n Note) stored() (Note, error) {
	if len(n.Who) > maxWho {
		return Note{}, invalid("Who has %d bytes: must have at most %d", len(n.Who), maxWho)
	}
	if len(n.Why) > storable.MaxText {
		return Note{}, invalid("Why has %d bytes: must have at most %d", len(n.Why), storable.MaxText)
	}
	return Note{storable.Text(n.Who), storable.Text(n.Why)}, nil
}

// maxWho is the greatest length of a name that is stored with a change.
const maxWho = 255

// readChanges makes the worker of this process, and the workers of package tasktest, read changes soon.
func (q *Queue) readChanges() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if w := q.life.Worker(); w != nil {
		w.ReadChanges()
	}
	for _, w := range q.steppers {
		w.ReadChanges()
	}
}

// changesReader is a worker that reads changes.
type changesReader interface{ ReadChanges() }

// stepping makes w read changes as soon as this process makes one, until the returned function
// is called.
func (q *Queue) stepping(w changesReader) (stop func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.steppers = append(q.steppers, w)
	return func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.steppers = slices.DeleteFunc(q.steppers, func(other changesReader) bool { return other == w })
	}
}
