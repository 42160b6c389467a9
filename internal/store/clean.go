package store

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/internal/statements"
)

// FinishedLanes is FinishedLanesOf for one queue.
func (s *Store) FinishedLanes(ctx context.Context, queue, state string) ([]Head, error) {
	found, err := s.FinishedLanesOf(ctx, []string{queue}, state)
	return headsOf(found), err
}

// FinishedLanesOf finds the lanes of the tasks of queues that are in a final state, or blocked.
// Its cost grows with the number of lanes, not of tasks.
func (s *Store) FinishedLanesOf(ctx context.Context, queues []string, state string) (all []Found, err error) {
	for places := FinishedPlaces(queues, state); len(places) > 0 && err == nil; {
		var found []Found
		found, places, err = s.FindFinished(ctx, places, state, pageLanes)
		all = append(all, found...)
	}
	return all, err
}

// FinishedPlaces are the places before the lanes of queues in a final state.
func FinishedPlaces(queues []string, state string) []Place {
	places := make([]Place, len(queues))
	for i, queue := range slices.Sorted(slices.Values(queues)) {
		places[i] = statements.FirstFinishedPlace(queue, state)
	}
	return places
}

// FindFinished finds up to most lanes behind places, of tasks in a final state. It returns the places for the next
// call, or none after all lanes.
func (s *Store) FindFinished(ctx context.Context, places []Place, state string, most int) (found []Found, rest []Place, err error) {
	if s.server.Caps.LooseScan {
		return s.finishedBySteps(ctx, places, state, most)
	}
	part := places[:min(len(places), MaxBatch)]
	found, err = s.lanesBehind(ctx, s.batch("finished lanes", len(part), statements.FinishedLanes), part, statements.Values{"page": most, "state": state})
	if err != nil {
		return nil, places, err
	}
	return found, slices.Concat(restOf(part, found, most), places[len(part):]), nil
}

// finishedBySteps is FindFinished with a statement for each lane.
func (s *Store) finishedBySteps(ctx context.Context, places []Place, state string, most int) (found []Found, rest []Place, err error) {
	if len(places) > 1 && places[0].Lane == statements.FirstFinished(state) {
		var some []Place
		for part := range slices.Chunk(places, MaxBatch) {
			occupied, err := s.occupied(ctx, part, state)
			if err != nil {
				return nil, places, err
			}
			some = append(some, occupied...)
		}
		places = some
	}
	stmt := s.fixed("next finished lane", func(server dialect.Server, tables dialect.Tables) statements.Stmt {
		return statements.FinishedLanes(server, tables, 1)
	})
	for i, place := range places {
		for {
			if rest = slices.Clone(places[i:]); len(found) >= most {
				rest[0] = place
				return found, rest, nil
			}
			values := statements.Values{"queue": place.Queue, "state": state}
			statements.SetLane(values, place.Lane)
			next, err := s.heads(ctx, stmt, values, nil)
			found = append(found, inQueue(place.Queue, next)...)
			if err != nil {
				rest[0] = place
				return found, rest, err
			}
			if len(next) == 0 || next[0].Corrupt != nil {
				break
			}
			place.Lane = next[0].Lane
		}
	}
	return found, nil, nil
}

// CleanParams select tasks to delete: up to Limit tasks of a lane that finished longer
// than Retention ago, the oldest first, except for the first Skip.
type CleanParams struct {
	Queue     string
	Lane      Lane
	Retention time.Duration
	UpTo      int64 // only tasks with this anchor and earlier ones; 0 is all
	Since     int64 // the anchor from which to search; earlier tasks do not matter
	Skip      int
	Limit     int
}

// anyAnchor is later than all anchors, in the year 9999.
const anyAnchor = int64(253_370_764_800_000_000)

// FirstToKeep returns the anchor of the first task to keep if the last most tasks of a lane stay. It returns 0 if the
// lane has fewer tasks.
func (s *Store) FirstToKeep(ctx context.Context, queue string, at Lane, most int) (anchor int64, err error) {
	values := statements.Values{"queue": queue, "others": most - 1}
	statements.SetLane(values, at)
	err = s.read(ctx, s.fixed("first to keep", statements.FirstToKeep), values, func() { anchor = 0 }, func(r row) (err error) {
		anchor, err = r.int(0)
		return err
	})
	return anchor, err
}

// Clean deletes finished tasks with their recorded attempts and steps. It returns the number of
// tasks, and the anchor of the last one. After an error, it returns the same of the tasks that it found,
// and has deleted none.
func (s *Store) Clean(ctx context.Context, p CleanParams) (n int, last int64, err error) {
	find := s.fixed("clean", statements.Clean)
	values := statements.Values{"queue": p.Queue, "since": p.Since, "upto": cmp.Or(p.UpTo, anyAnchor), "keep": p.Retention.Microseconds(), "skip": p.Skip, "limit": p.Limit}
	statements.SetLane(values, p.Lane)
	var old []statements.Finished
	_, err = inTx(ctx, s, func(x runner) (_ struct{}, err error) {
		old = nil // this may be the second try
		err = x.query(ctx, find, values, nil, func(r row) error {
			old = append(old, statements.Finished{})
			return statements.FinishedColumns.Scan(r, &old[len(old)-1])
		})
		if err != nil || len(old) == 0 {
			return struct{}{}, err
		}
		rows := statements.IDColumns.Rows(len(old), func(i int) *Key { return &Key{TaskID: old[i].ID} })
		if _, err := x.exec(ctx, s.batch("drop", len(old), statements.Drop), nil, rows); err != nil {
			return struct{}{}, err
		}
		if _, err := x.exec(ctx, s.batch("forget", len(old), statements.Forget), nil, rows); err != nil {
			return struct{}{}, err
		}
		_, err = x.exec(ctx, s.batch("drop steps", len(old), statements.DropSteps), nil, rows)
		return struct{}{}, err
	})
	if len(old) > 0 {
		last = old[len(old)-1].Anchor
	}
	return len(old), last, err
}

// Expired is the result of [Store.Expire].
type Expired struct {
	IDs     []int64 // of tasks that have expired
	Members bool    // other tasks run after some of them
	More    bool    // there may be more such tasks
	Refused bool    // tasks were found that have expired, and none of them was cancelled
}

// Expire cancels up to a batch of the tasks of a lane whose anchor is longer ago than within, and gives them an error. Rows
// that others have locked are left out, where the engine can do that.
func (s *Store) Expire(ctx context.Context, queue string, at Lane, within time.Duration, why string) (e Expired, err error) {
	values := statements.Values{"queue": queue, "since": int64(0), "upto": anyAnchor, "keep": within.Microseconds(), "skip": 0, "limit": MaxBatch}
	statements.SetLane(values, at)
	var late []int64
	_, err = inTx(ctx, s, func(x runner) (_ struct{}, err error) {
		late = nil // this may be the second try
		return struct{}{}, x.query(ctx, s.fixed("clean", statements.Clean), values, nil, func(r row) error {
			var f statements.Finished
			err := statements.FinishedColumns.Scan(r, &f)
			late = append(late, f.ID)
			return err
		})
	})
	if err != nil || len(late) == 0 {
		return e, err
	}
	return s.expire(ctx, late, len(late) == MaxBatch, why)
}

// expire cancels tasks that have not started in time. more reports whether there may be other such tasks.
func (s *Store) expire(ctx context.Context, late []int64, more bool, why string) (Expired, error) {
	acted, err := s.Act(ctx, ActParams{Action: ActExpire, IDs: late, Why: why})
	return Expired{acted.Done, acted.Members, more && len(acted.Done) > 0, len(acted.Done) == 0}, err
}

// ExpireDated reads the first tasks of a lane, cancels the tasks that have not started by a time of their own, and gives
// them an error. It sets More if it has cancelled half of a batch or more.
func (s *Store) ExpireDated(ctx context.Context, queue string, at Lane, why string) (e Expired, err error) {
	values := statements.Values{"queue": queue, "since": int64(0), "limit": MaxBatch}
	statements.SetLane(values, at)
	var late []int64
	err = s.read(ctx, s.fixed("due in", statements.DueIn), values, func() { late = nil }, func(r row) error {
		var d statements.Due
		err := statements.DueColumns.Scan(r, &d)
		if HasExpired(d.Metadata, at, d.Now) {
			late = append(late, d.ID)
		}
		return err
	})
	if err != nil || len(late) == 0 {
		return e, err
	}
	return s.expire(ctx, late, len(late) >= MaxBatch/2, why)
}
