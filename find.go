package falldue

import (
	"context"
	"slices"

	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/internal/store"
)

// Found is a task as [Queue.Find] returns it.
type Found struct {
	TaskInfo
	Phase Phase
}

// Page is a page of the tasks that match a filter, in the order of their ids.
type Page struct {
	Tasks []Found
	// More reports whether there may be more tasks, after the id Next: TaskFilter.After for
	// the next page.
	More bool
	Next int64
	// Bounded reports whether the page ends early because Find has looked at 10,000 tasks
	// or 64 MiB of payloads. It may have no tasks then.
	Bounded bool
	// Undecodable is the number of tasks that Find has looked at and left out because
	// Config.Codec cannot decode their payloads or results, so that it does not know whether
	// Match matches them. It is 0 without a Match: they are among the tasks then, with their
	// DecodeError.
	Undecodable int64
}

const (
	// maxSearched is the greatest number of tasks that a page looks at to match phases and
	// payloads.
	maxSearched = 10_000
	// maxSearchedBytes is the number of bytes of payloads after which a page ends.
	maxSearchedBytes = 64 << 20
	// searchedAtOnce is the number of tasks that are read at once to match their payloads.
	searchedAtOnce = 100
	// phasedAtOnce is the number of tasks that are read at once to find their phases.
	phasedAtOnce = 500
)

// Find returns a page of the tasks that match a filter, with their phases. To match
// Phase and Match it looks at the tasks that match the other fields, up to 10,000 for a
// page, so that its cost is bounded; [Page].Bounded says when that was not enough. Tasks
// that come and go do not shift pages. Its error wraps [ErrInvalid] for an invalid filter.
func (q *Queue) Find(ctx context.Context, f TaskFilter) (Page, error) {
	if err := f.setLimit(); err != nil {
		return Page{}, err
	}
	s, err := q.search(f)
	if err != nil {
		return Page{}, err
	}
	var p Page
	p.Tasks, p.More, p.Bounded, err = s.page(ctx, f.Limit)
	p.Next, p.Undecodable = s.f.After, s.undecodable
	return p, err
}

// search looks for tasks, a page after the other.
type search struct {
	q       *Queue
	f       TaskFilter // After moves on
	matches func(payload []byte) bool
	// brief leaves out payloads, where they are not matched, and phases.
	brief bool
	// unfinished leaves out finished tasks.
	unfinished bool
	// undecodable is how many tasks it could not match so far, because their payloads are not
	// known.
	undecodable int64
}

func (q *Queue) search(f TaskFilter) (*search, error) {
	if err := f.validate(); err != nil {
		return nil, err
	}
	switch p := State(f.Phase); p {
	case Blocked, Done, Dead, Cancelled: // which the database knows
		if f.State == "" || f.State == p {
			f.State, f.Phase = p, ""
		}
	}
	return &search{q: q, f: f, matches: matcher(f.Match)}, nil
}

// page returns up to so many tasks, and whether there may be more after them. It may
// return fewer because its bound was reached.
func (s *search) page(ctx context.Context, most int) (found []Found, more, bounded bool, err error) {
	f := s.f.stored()
	f.Brief = s.brief && s.matches == nil
	if s.unfinished {
		f.Phase = statements.PhaseUnfinished
	}
	if s.matches == nil && s.f.Phase == "" {
		f.Limit = most
		found, err = s.Read(ctx, f)
		if n := len(found); n > 0 {
			s.f.After = found[n-1].ID
		}
		return found, len(found) == most, false, err
	}
	f.Limit = maxSearched
	n, last, err := s.q.store.Span(ctx, f)
	if err != nil || n == 0 {
		return nil, false, false, err
	}
	f.Upto, f.Limit = last, phasedAtOnce
	if s.f.Phase != "" {
		f.Phase = s.f.Phase.narrowed()
	}
	if s.matches != nil {
		f.Limit = searchedAtOnce
	}
	for bytes := 0; ; {
		list, err := s.Read(ctx, f)
		if err != nil {
			return nil, false, false, err
		}
		for _, t := range list {
			f.After, s.f.After = t.ID, t.ID
			bytes += len(t.Payload)
			if (s.f.Phase == "" || t.Phase == s.f.Phase) && s.matched(t) {
				if found = append(found, t); len(found) == most {
					return found, t.ID < last || n == maxSearched, false, nil
				}
			}
		}
		if len(list) < f.Limit {
			s.f.After = last
			return found, n == maxSearched, n == maxSearched, nil
		}
		if bytes > maxSearchedBytes {
			return found, true, true, nil
		}
	}
}

// matched reports whether the payload of a task matches, and counts the task if it is not known.
func (s *search) matched(t Found) bool {
	if s.matches != nil && t.DecodeError != nil {
		s.undecodable++
		return false
	}
	return s.matches == nil || s.matches(t.Payload)
}

// Read reads tasks, and their phases where they are wanted.
func (s *search) Read(ctx context.Context, f store.Filter) ([]Found, error) {
	rows, err := s.q.store.Tasks(ctx, f)
	if err != nil {
		return nil, err
	}
	tasks, found := make([]TaskInfo, len(rows)), make([]Found, len(rows))
	for i, t := range rows {
		tasks[i] = taskInfo(t, s.q.cfg.Codec)
		found[i].TaskInfo = tasks[i]
	}
	if s.brief && s.f.Phase == "" {
		return found, nil
	}
	list, err := s.q.Phases(ctx, tasks)
	for i, p := range list {
		found[i].Phase = p
	}
	return found, err
}

// setLimit sets the default of Limit, and checks it.
func (f *TaskFilter) setLimit() error {
	if f.Limit == 0 {
		f.Limit = 100
	}
	if f.Limit < 0 || f.Limit > 10_000 {
		return invalid("Limit %d; allowed are 1 to 10,000", f.Limit)
	}
	return nil
}

// finished reports whether tasks of a state are finished.
func (s State) finished() bool { return slices.Contains([]State{Done, Dead, Cancelled}, s) }
