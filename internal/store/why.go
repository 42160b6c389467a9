package store

import (
	"context"
	"errors"
	"slices"
	"strings"
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
	slices.Sort(names)
	names = slices.Compact(names) // workers may define a limit differently
	permits, err := reading(ctx, s, func(x runner) (map[string][]*statements.Permit, error) { return s.readPermits(ctx, x, names) })
	if err != nil {
		return nil, err
	}
	list := make([]LimitState, len(limits))
	for i, l := range limits {
		list[i] = stateOf(l, permits[l.Name])
	}
	return list, nil
}

// stateOf returns the state of a limit with some permits.
func stateOf(l Limit, permits []*statements.Permit) LimitState {
	q := newQuota(l, permits)
	state := LimitState{Limit: l, Room: q.room}
	if q.room <= 0 {
		state.Wait = q.wait
	}
	if q.holder != nil {
		state.Next, state.holder = q.holder.TaskID, q.holder
	}
	for _, p := range permits {
		if q.isTaken(p) {
			state.Taken = append(state.Taken, p.TaskID)
			state.Halted = state.Halted || l.Form == HaltingSequence && p.State == statements.StateDead
		}
	}
	return state
}

// mostRangedPermits is how many permits KeyStates reads.
const mostRangedPermits = 10_000

// KeyStates returns the states that a limit per key has for keys, by the keys, and whether more keys may have one. It
// reads 10,000 permits at most. It locks nothing.
func (s *Store) KeyStates(ctx context.Context, l Limit) (states map[string]LimitState, more bool, err error) {
	// A name ends with a space and the key. The character after the space is "!".
	values := statements.Values{"from": l.Name, "before": strings.TrimSuffix(l.Name, " ") + "!", "limit": mostRangedPermits}
	var permits []*statements.Permit
	err = s.read(ctx, s.fixed("permit range", statements.PermitRange), values, func() { permits = nil }, func(r row) error {
		permits = append(permits, &statements.Permit{})
		return statements.PermitColumns.Scan(r, permits[len(permits)-1])
	})
	if err != nil {
		return nil, false, err
	}
	byName := map[string][]*statements.Permit{}
	for _, p := range permits {
		byName[p.Name] = append(byName[p.Name], p)
	}
	states = make(map[string]LimitState, len(byName))
	for name, list := range byName {
		of := l
		of.Name = name
		states[strings.TrimPrefix(name, l.Name)] = stateOf(of, list)
	}
	return states, len(permits) == mostRangedPermits, nil
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
