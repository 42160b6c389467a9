package store

import (
	"context"
	"errors"
	"time"

	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/internal/statements"
)

// CountAhead counts the tasks of a lane that come before the task id with an anchor, up to
// most.
func (s *Store) CountAhead(ctx context.Context, queue string, at Lane, id, anchor int64, most int) (n int, err error) {
	values := statements.Values{"queue": queue, "id": id, "since": anchor, "limit": most}
	statements.SetLane(values, at)
	err = s.read(ctx, s.fixed("count ahead", statements.CountAhead), values, func() { n = 0 }, func(r row) error {
		count, err := r.int(0)
		n = int(count)
		return err
	})
	return n, err
}

// LimitState is the state of a limit at a moment.
type LimitState struct {
	Limit
	// Room is how many more tasks the limit admits.
	Room int
	// Taken has the ids of the tasks that have permits of the limit. It is empty for a Bucket,
	// whose tasks are not known.
	Taken []int64
	// Wait is the time until the limit has room again, or 0 if it has room or the time is unknown.
	Wait time.Duration
	// Next is the task of a sequence that has begun and waits for its next attempt, or 0.
	Next int64
	// Halted reports whether the task with the permit of a sequence is dead.
	Halted bool
	// holder is the permit of Next.
	holder *statements.Permit
}

// Admits reports whether the limit admits tasks of a lane: it has room, and the task of a sequence
// that has begun is in no other lane.
func (l LimitState) Admits(at Lane) bool {
	return l.Room > 0 && (l.holder == nil || l.holder.IsIn(at))
}

// AdmitsTask reports whether the limit admits a task that waits: it has room, and no other task of a
// sequence has begun.
func (l LimitState) AdmitsTask(id int64) bool {
	return l.Room > 0 && (l.Next == 0 || l.Next == id)
}

// LimitStates returns the states of limits, in their order. It locks nothing.
func (s *Store) LimitStates(ctx context.Context, limits []Limit) ([]LimitState, error) {
	if len(limits) == 0 {
		return nil, nil
	}
	names := make([]string, len(limits))
	for i, l := range limits {
		names[i] = l.Name
	}
	permits, err := reading(ctx, s, func(x runner) (map[string][]*statements.Permit, error) { return s.readPermits(ctx, x, names) })
	if err != nil {
		return nil, err
	}
	list := make([]LimitState, len(limits))
	for i, l := range limits {
		q := newQuota(l, permits[l.Name])
		list[i] = LimitState{Limit: l, Room: q.room}
		if q.room <= 0 {
			list[i].Wait = q.wait
		}
		if q.holder != nil {
			list[i].Next, list[i].holder = q.holder.TaskID, q.holder
		}
		for _, p := range permits[l.Name] {
			if q.isTaken(p) {
				list[i].Taken = append(list[i].Taken, p.TaskID)
				list[i].Halted = l.Form == HaltingSequence && p.State == statements.StateDead
			}
		}
	}
	return list, nil
}

// errUndo rolls back a transaction that only had to try a lock.
var errUndo = errors.New("nothing is to be committed")

// Locked reports whether another transaction has locked the row of a task, whose fence must not have
// changed in the meantime. It locks the row for a moment. It returns false for known if the server
// cannot tell, or does not let the user lock rows.
func (s *Store) Locked(ctx context.Context, key Key) (locked, known bool, err error) {
	if !s.server.Caps.LockRows || !s.server.Caps.SkipLocked {
		return false, false, nil
	}
	stmt := s.batch("pick", 1, statements.Pick)
	rows := statements.FenceColumns.Rows(1, func(int) *Key { return &key })
	_, err = inTx(ctx, s, func(x runner) (struct{}, error) {
		locked = true
		err := x.query(ctx, stmt, nil, rows, func(row) error { locked = false; return nil })
		if err == nil {
			err = errUndo
		}
		return struct{}{}, err
	})
	switch class := s.server.Classify(err); {
	case errors.Is(err, errUndo):
		return locked, true, nil
	case class == dialect.Other || class == dialect.ReadOnly:
		return false, false, ctx.Err()
	}
	return false, false, err
}

// noDelay is the delay of a search for tasks that need not be due.
var noDelay = NewDelay(backoff.Constant(0).Delay())

// First returns the task of a lane that comes first if its anchor is not in the future, or 0
// if there is none.
func (s *Store) First(ctx context.Context, queue string, at Lane) (int64, error) {
	list, err := s.Candidates(ctx, queue, Source{Lane: at, Delay: noDelay}, 0, 1)
	if err != nil || len(list) == 0 {
		return 0, err
	}
	return list[0].TaskID, nil
}
