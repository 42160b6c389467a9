package ops

import (
	"context"
	"math"
	"slices"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/internal/storable"
	"github.com/falldue/falldue/internal/store"
)

// ListOptions select a page of the tasks that match a filter, for [Ops.Tasks].
type ListOptions struct {
	// Limit is the maximum number of tasks of the page, up to 10,000. Defaults to 100.
	Limit int
	// After is an ID. The page has tasks with a greater ID: for the next page set it to [Page].Next.
	After int64
	// Newest lists tasks in descending order of their IDs. The page then has tasks with smaller IDs than After, unless
	// After is 0.
	Newest bool
	// Quick limits the search to about a tenth of a second, for a person who waits for the page. If not all tasks have
	// been examined by then, [Page].Bounded is true. The rest of the page then has only matching tasks that are known from
	// the index or, for running tasks, from the heartbeats of workers. Other tasks can be missing.
	Quick bool
}

func (o *ListOptions) setLimit() error {
	if o.Limit == 0 {
		o.Limit = 100
	}
	if o.Limit < 0 || o.Limit > 10_000 {
		return invalid("Limit %d: must be 1 to 10,000", o.Limit)
	}
	return nil
}

// Page is a page of the tasks that match a filter, in the order of their IDs or, with
// ListOptions.Newest, in the reverse order, with their phases.
type Page struct {
	Tasks []falldue.TaskInfo
	// More reports whether there may be more tasks. For the next page, set ListOptions.After to Next.
	More bool
	Next int64
	// Bounded reports whether the page ends early because Tasks has read 10,000 tasks or 64 MiB of payloads, or because
	// of ListOptions.Quick. Such a page may have no tasks.
	Bounded bool
	// Undecodable is the number of tasks that are left out because Config.Codec cannot decode their payloads or results,
	// so it is not known whether Match matches them. Without a Match, Undecodable is 0, and such tasks are in the page,
	// with their DecodeError.
	Undecodable int64
}

const (
	// maxSearched is the greatest number of tasks that a page looks at to match phases and
	// payloads.
	maxSearched = 10_000
	// fewPages is the greatest number of pages of tasks that are few, so that a page takes them from the index.
	fewPages = 20
	// maxSearchedBytes is the number of bytes of payloads after which a page ends.
	maxSearchedBytes = 64 << 20
	// searchedAtOnce is the number of tasks that are read together to match their payloads.
	searchedAtOnce = 100
	// phasedAtOnce is the number of tasks that are read together to find their phases.
	phasedAtOnce = 500
)

// Tasks returns a page of the tasks that match a filter, with their phases. If f has a Phase or a Match, Tasks examines
// up to 10,000 tasks that match the other fields, and [Page].Bounded reports whether it stopped there. If the phase is
// one of unfinished tasks, Tasks examines only unfinished tasks. New and deleted tasks do not shift pages. Pass options
// at most once. The error wraps [falldue.ErrInvalid] for an invalid filter or limit.
func (o *Ops) Tasks(ctx context.Context, f Filter, list ...ListOptions) (Page, error) {
	return o.list(ctx, f, list, func(s *search) { s.indexed = true })
}

// TasksTx is like [Ops.Tasks] inside tx, the caller's transaction: it lists the tasks that tx sees, including tasks
// that tx has enqueued. Phases and matches need reads outside of tx. So the tasks have no Phase, and
// the filter must have neither a Phase nor a Match.
func (o *Ops) TasksTx(ctx context.Context, tx falldue.Tx, f Filter, list ...ListOptions) (Page, error) {
	if err := store.CheckTx(tx); err != nil {
		return Page{}, invalid("%w", err)
	}
	if f.Phase != "" || f.Match != "" {
		return Page{}, invalid("a filter with Phase %q and Match %.100q: TasksTx takes neither", f.Phase, f.Match)
	}
	return o.list(ctx, f, list, func(s *search) {
		s.phaseless = true
		s.rows = func(ctx context.Context, f store.Filter) ([]store.Task, error) { return o.store.TasksTx(ctx, tx, f) }
	})
}

// list returns a page of a search that set changes.
func (o *Ops) list(ctx context.Context, f Filter, opts []ListOptions, set func(*search)) (p Page, err error) {
	list, err := oneOf(opts)
	if err != nil {
		return p, err
	}
	if err := list.setLimit(); err != nil {
		return p, err
	}
	s, err := o.search(f, list.After)
	if err != nil {
		return p, err
	}
	if set(s); list.Quick {
		s.quick = &quickly
	}
	if s.newest = list.Newest; s.newest && s.after == 0 {
		s.after = math.MaxInt64
	}
	p.Tasks, p.More, p.Bounded, err = s.page(ctx, list.Limit)
	p.Next, p.Undecodable = s.after, s.undecodable
	return p, err
}

// search looks for tasks, a page after the other.
type search struct {
	o       *Ops
	rows    func(context.Context, store.Filter) ([]store.Task, error)
	f       Filter
	after   int64
	newest  bool // after goes down
	matches func(payload []byte) bool
	// brief leaves out payloads, and phaseless leaves out phases, unless the filter needs them.
	brief, phaseless bool
	// unfinished leaves out finished tasks.
	unfinished bool
	// indexed allows a page to look in the index first. quick bounds the page, if it is not nil.
	indexed bool
	quick   *quick
	// undecodable is how many tasks it could not match so far, because their payloads are not
	// known.
	undecodable int64
}

func (o *Ops) search(f Filter, after int64) (*search, error) {
	if err := f.Err(); err != nil {
		return nil, err
	}
	if p := falldue.State(f.Phase); p == falldue.StateBlocked || finished(p) { // which the database knows
		if f.State == "" || f.State == p {
			f.State, f.Phase = p, ""
		}
	}
	return &search{o: o, rows: o.store.Tasks, f: f, after: after, matches: matcher(f.Match)}, nil
}

// page returns up to so many tasks, and whether there may be more after them. It may
// return fewer because its bound was reached.
func (s *search) page(ctx context.Context, most int) (found []falldue.TaskInfo, more, bounded bool, err error) {
	f := s.f.stored()
	f.After, f.Newest, f.Brief = s.after, s.newest, s.brief && s.matches == nil
	if s.unfinished {
		f.Phase = statements.PhaseUnfinished
	}
	if s.quick != nil && s.indexed && s.f != (Filter{}) {
		return s.quickPage(ctx, f, most)
	}
	if s.matches == nil && s.f.Phase == "" {
		f.Limit = most
		if s.selective(f, most) {
			ids, all, err := s.ids(ctx, f, states, min(maxSearched, fewPages*most))
			if err != nil || all && len(ids) == 0 {
				return nil, false, false, err
			}
			if all {
				n := min(most, len(ids))
				s.after = ids[n-1]
				found, err = s.read(ctx, func() ([]store.Task, error) { return s.o.store.TasksOf(ctx, f, ids[:n]) })
				return found, len(ids) > n, false, err
			}
		}
		found, err = s.read(ctx, func() ([]store.Task, error) { return s.rows(ctx, f) })
		if n := len(found); n > 0 {
			s.after = found[n-1].ID
		}
		return found, len(found) == most, false, err
	}
	if s.f.Phase != "" {
		f.Phase = narrowed(s.f.Phase)
	}
	next, last, bounded, err := s.batches(ctx, f)
	if err != nil {
		return nil, false, false, err
	}
	for bytes := 0; ; {
		list, ended, err := next(s.after)
		if err != nil {
			return nil, false, false, err
		}
		for _, t := range list {
			s.after = t.ID
			bytes += len(t.Payload)
			if (s.f.Phase == "" || t.Phase == s.f.Phase) && s.matched(t) {
				if found = append(found, t); len(found) == most {
					return found, t.ID != last || bounded, false, nil
				}
			}
		}
		switch {
		case ended:
			s.after = last
			return found, bounded, bounded, nil
		case bytes > maxSearchedBytes:
			return found, true, true, nil
		}
	}
}

// batches returns a function next that reads a page's tasks in batches: next(after) reads the tasks that
// follow the ID after, and reports whether the batch is the last one. The result last is the ID of the
// last task of the page. The result bounded reports whether the table may have more tasks after the page.
//
// If the filter has a phase, batches first reads the IDs of the unfinished tasks through the index. If
// there are more than maxSearched such tasks, next reads the tasks in the order of their IDs instead.
func (s *search) batches(ctx context.Context, f store.Filter) (next func(after int64) ([]falldue.TaskInfo, bool, error), last int64, bounded bool, err error) {
	most := phasedAtOnce
	if s.matches != nil {
		most = searchedAtOnce
	}
	if s.f.Phase != "" {
		ids, all, err := s.ids(ctx, f, []falldue.State{falldue.StateOpen, falldue.StateSnoozed}, maxSearched)
		if err != nil {
			return nil, 0, false, err
		}
		if all && len(ids) > 0 {
			return func(int64) ([]falldue.TaskInfo, bool, error) {
				n := min(most, len(ids))
				batch := ids[:n]
				ids = ids[n:]
				list, err := s.read(ctx, func() ([]store.Task, error) { return s.o.store.TasksOf(ctx, f, batch) })
				return list, len(ids) == 0, err
			}, ids[len(ids)-1], false, nil
		}
		if all {
			return nothing, f.After, false, nil
		}
	}
	f.Limit = maxSearched
	n, last, err := s.o.store.Span(ctx, f)
	if n == 0 {
		return nothing, f.After, false, err
	}
	f.Upto, f.Limit = last, most
	return func(after int64) ([]falldue.TaskInfo, bool, error) {
		f.After = after
		list, err := s.read(ctx, func() ([]store.Task, error) { return s.rows(ctx, f) })
		return list, len(list) < most, err
	}, last, n == maxSearched, err
}

// nothing reads no tasks.
func nothing(int64) ([]falldue.TaskInfo, bool, error) { return nil, true, nil }

// selective reports whether the filter has a state or a key, so that the index may find the tasks of a page sooner than
// their order does. The index does not find the tasks that only a transaction sees.
func (s *search) selective(f store.Filter, most int) bool {
	return s.indexed && most <= store.MaxBatch && (f.State != "" || f.Key != "" && !storable.HasParts(f.Key))
}

// IDs lists up to most IDs of the tasks that match a filter, in the filter's order, and reports whether these are all.
// Without a state in the filter, it reads the tasks in the given states.
func (s *search) ids(ctx context.Context, f store.Filter, states []falldue.State, most int) (ids []int64, all bool, err error) {
	queues := []string{f.Queue}
	if f.Queue == "" {
		if queues, err = s.o.store.Queues(ctx); err != nil {
			return nil, false, err
		}
	}
	if f.State != "" {
		states = []falldue.State{falldue.State(f.State)}
	}
	for _, f.Queue = range queues {
		for _, state := range states {
			f.State = string(state)
			found, err := s.o.store.IDs(ctx, f, most+1-len(ids))
			if err != nil {
				return nil, false, err
			}
			if ids = append(ids, found...); len(ids) > most {
				return nil, false, nil
			}
		}
	}
	slices.Sort(ids)
	if f.Newest {
		slices.Reverse(ids)
	}
	return ids, true, nil
}

// matched reports whether the payload of a task matches, and counts the task if it is not known.
func (s *search) matched(t falldue.TaskInfo) bool {
	if s.matches != nil && t.DecodeError != nil {
		s.undecodable++
		return false
	}
	return s.matches == nil || s.matches(t.Payload)
}

// read reads tasks, and their phases where they are wanted.
func (s *search) read(ctx context.Context, get func() ([]store.Task, error)) ([]falldue.TaskInfo, error) {
	rows, err := get()
	if err != nil {
		return nil, err
	}
	tasks := s.o.inside.TaskInfos(rows)
	if s.phaseless && s.f.Phase == "" {
		return tasks, nil
	}
	return tasks, s.o.SetPhases(ctx, tasks)
}
