package ops

import (
	"context"
	"slices"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/storable"
	"github.com/falldue/falldue/internal/store"
)

// lookedQueues is the number of queues in whose index entries a quick page looks for tasks of any queue.
const lookedQueues = 20

// quick bounds a page. Tests lower it.
type quick struct {
	looked int           // tasks whose index entries a page reads to find all that match
	first  int           // tasks that it looks at first in the order of their IDs; then twice as many, and so on
	within time.Duration // the time after which it begins no other statement
}

var quickly = quick{maxSearched, 10_000, 100 * time.Millisecond}

// quickPage is page within about [quick].within. It finds the tasks through the index if that has few candidates.
// Otherwise it looks at tasks in the order of their IDs. If that takes too long, it continues with tasks that it knows
// from the index, or from the heartbeats of workers.
func (s *search) quickPage(ctx context.Context, f store.Filter, most int) (found []falldue.TaskInfo, more, bounded bool, err error) {
	began := time.Now()
	if s.f.Phase != "" {
		f.Phase = narrowed(s.f.Phase)
	}
	ids, all, err := s.look(ctx, f)
	if err != nil {
		return nil, false, false, err
	}
	if !all {
		if s.f.Phase == falldue.PhaseRunning {
			ids = append(ids, s.announced(ctx, f)...)
		}
		found, more, bounded, err = s.windows(ctx, f, most, began)
		if bounded && err == nil {
			found, err = s.hinted(ctx, f, found, ids, most)
		}
		return found, more, bounded, err
	}
	for bytes := 0; len(ids) > 0; {
		read := ids[:min(len(ids), s.batch(most-len(found)))]
		ids = ids[len(read):]
		list, err := s.read(ctx, func() ([]store.Task, error) { return s.o.store.TasksOf(ctx, f, read) })
		if err != nil {
			return nil, false, false, err
		}
		if s.take(&found, list, most, &bytes) {
			return found, len(ids) > 0 || s.after != read[len(read)-1], false, nil
		}
		if s.after = read[len(read)-1]; len(ids) > 0 && s.enough(began, bytes) {
			return found, true, true, nil
		}
	}
	return found, false, false, nil
}

// hinted appends those of some tasks that match and are behind s.after, to a page that ended early.
func (s *search) hinted(ctx context.Context, f store.Filter, found []falldue.TaskInfo, ids []int64, most int) ([]falldue.TaskInfo, error) {
	ids = slices.DeleteFunc(ids, func(id int64) bool { return !s.behind(id) })
	s.sort(ids)
	ids = slices.Compact(ids)
	ids = ids[:min(len(ids), s.batch(most-len(found)))]
	if len(ids) == 0 {
		return found, nil
	}
	list, err := s.read(ctx, func() ([]store.Task, error) { return s.o.store.TasksOf(ctx, f, ids) })
	after, before, bytes := s.after, len(found), 0
	s.take(&found, list, most, &bytes)
	if s.after = after; len(found) > before {
		s.after = found[len(found)-1].ID
	}
	return found, err
}

// behind reports whether the page may have the task with an ID.
func (s *search) behind(id int64) bool {
	if s.newest {
		return id < s.after
	}
	return id > s.after
}

// batch returns how many tasks are read together for a page that lacks most.
func (s *search) batch(most int) int {
	switch {
	case s.matches != nil:
		return searchedAtOnce
	case s.f.Phase != "":
		return phasedAtOnce
	}
	return min(most, store.MaxBatch)
}

// take appends the tasks of a list that match, and reports whether there are most of them. Then it has looked at no
// task behind the last one.
func (s *search) take(found *[]falldue.TaskInfo, list []falldue.TaskInfo, most int, bytes *int) (full bool) {
	for _, t := range list {
		s.after = t.ID
		*bytes += len(t.Payload)
		if (s.f.Phase == "" || t.Phase == s.f.Phase) && s.matched(t) {
			if *found = append(*found, t); len(*found) == most {
				return true
			}
		}
	}
	return false
}

func (s *search) enough(began time.Time, bytes int) bool {
	return time.Since(began) > s.quick.within || bytes > maxSearchedBytes
}

// windows looks at the tasks after s.after in the order of their IDs: at a number of them, then at twice as many, as
// long as that takes little time.
func (s *search) windows(ctx context.Context, f store.Filter, most int, began time.Time) (found []falldue.TaskInfo, more, bounded bool, err error) {
	f.Near = true
	bytes := 0
	for size := s.quick.first; ; size *= 2 {
		start := time.Now()
		n, last, err := s.o.store.Span(ctx, store.Filter{After: s.after, Newest: s.newest, Limit: size})
		if err != nil || n == 0 {
			return found, false, false, err
		}
		for f.Upto = last; ; {
			f.After, f.Limit = s.after, s.batch(most-len(found))
			list, err := s.read(ctx, func() ([]store.Task, error) { return s.rows(ctx, f) })
			if err != nil {
				return nil, false, false, err
			}
			if s.take(&found, list, most, &bytes) {
				return found, n == size || s.after != last, false, nil
			}
			if len(list) < f.Limit {
				break
			}
			if s.enough(began, bytes) {
				return found, true, true, nil
			}
		}
		if s.after = last; n < size {
			return found, false, false, nil
		}
		if took := time.Since(start); time.Since(began)+2*took > s.quick.within {
			return found, true, true, nil
		}
	}
}

// look returns the IDs of the tasks that match, in the order of the page, and reports whether these are all: whether
// the index has few entries of their queues, states and key. Of a key with parts it finds the keys that begin with them.
func (s *search) look(ctx context.Context, f store.Filter) (ids []int64, all bool, err error) {
	if f.Queue == "" && f.State == "" && s.f.Phase == "" && f.Key == "" {
		return nil, false, nil
	}
	queues, in := []string{f.Queue}, states
	if f.Queue == "" {
		if queues, err = s.o.store.FirstQueues(ctx, lookedQueues+1); err != nil || len(queues) > lookedQueues {
			return nil, false, err
		}
	}
	switch {
	case f.State != "":
		in = []falldue.State{falldue.State(f.State)}
	case s.f.Phase == falldue.PhaseSnoozed:
		in = []falldue.State{falldue.StateSnoozed}
	case s.f.Phase == falldue.PhaseScheduled:
		in = []falldue.State{falldue.StateOpen}
	case s.f.Phase != "":
		in = []falldue.State{falldue.StateOpen, falldue.StateSnoozed}
	}
	left := s.quick.looked
	for _, f.Queue = range queues {
		for _, state := range in {
			f.State = string(state)
			found, read, err := s.o.store.LookIDs(ctx, f, left+1)
			if err != nil {
				return nil, false, err
			}
			if ids, left = append(ids, found...), left-read; left < 0 {
				return ids, false, nil
			}
		}
	}
	s.sort(ids)
	return ids, f.Key == "" || !storable.HasParts(f.Key), nil
}

// sort sorts IDs in the order of the page.
func (s *search) sort(ids []int64) {
	if slices.Sort(ids); s.newest {
		slices.Reverse(ids)
	}
}

// announced returns the IDs of the tasks that live workers announce as running, as far as the user can read them.
func (s *search) announced(ctx context.Context, f store.Filter) (ids []int64) {
	workers, err := s.o.Workers(ctx)
	if err != nil {
		return nil
	}
	for _, t := range LongestRunning(workers) {
		if (f.Queue == "" || t.Queue == f.Queue) && (f.Kind == "" || t.Kind == f.Kind) {
			ids = append(ids, t.ID)
		}
	}
	return ids
}
