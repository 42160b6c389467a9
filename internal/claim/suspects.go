package claim

import (
	"context"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/falldue/falldue/internal/control"
	"github.com/falldue/falldue/internal/lanes"
	"github.com/falldue/falldue/internal/retry"
	"github.com/falldue/falldue/internal/store"
)

// suspects are the lanes of a queue from which a claim failed. The database may refuse to let some of
// their tasks be claimed, because of a trigger or an index of the user's, or a payload that cannot be
// read. A claim from a suspect lane is separate and names tasks by their keys, in batches that shrink
// until the refused tasks are known. Refused tasks are left out, and tried again later. A lane without
// refused tasks is no longer suspect.
type suspects struct {
	queue  string
	lanes  *lanes.Tracker
	table  table
	events events

	mu    sync.Mutex
	known map[store.Lane]*suspect
}

// suspect is a lane from which a claim failed. Only the poller's loop changes it.
type suspect struct {
	batchSize retry.BatchSize
	next      time.Time // when to claim from the lane again; guarded by suspects.mu
	refused   map[int64]refusedTask
	accepted  time.Time // when tasks of the lane were last claimed
	logged    time.Time // when a refusal was last logged
	silent    int       // refusals since logged
}

// refusedTask is a task whose claim the database refuses.
type refusedTask struct {
	anchor int64
	first  time.Time     // when the database first refused the task
	until  time.Time     // when to try again
	pause  time.Duration // after the last refusal; 0 while the task might not be to blame
}

const (
	// A refused task is tried again after minRefusedPause, doubled with each refusal up to
	// maxRefusedPause.
	minRefusedPause = 5 * time.Second
	maxRefusedPause = 5 * time.Minute
	// doubtPause is the pause of a task that might not be to blame, unless other tasks can be
	// claimed before its end. It is longer than the pause between two walks, so that the next
	// walk begins with other tasks.
	doubtPause = 15 * time.Second
	// maxRefusals is how many statements of one claim may fail before the other lanes
	// have their turn.
	maxRefusals = 50
	// refusedLogEvery is the shortest time between two log lines about one lane.
	refusedLogEvery = time.Minute
)

// add records that a claim from lanes failed.
func (s *suspects) add(sources []store.Source) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known == nil {
		s.known = map[store.Lane]*suspect{}
	}
	now := time.Now()
	for at, l := range s.known {
		if now.Sub(l.next) > 2*maxRefusedPause {
			delete(s.known, at) // its tasks are gone
		}
	}
	for _, from := range sources {
		if s.known[from.Lane] == nil {
			s.known[from.Lane] = &suspect{batchSize: retry.NewBatchSize(), next: now, refused: map[int64]refusedTask{}}
		}
	}
}

// next returns the due lanes to claim from next: only the first lane if it is suspect, or else the lanes
// before the first suspect one.
func (s *suspects) next(due []store.Lane) (lanes []store.Lane, alone *suspect) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.known) == 0 {
		return due, nil
	}
	now := time.Now()
	for _, at := range due {
		switch l := s.known[at]; {
		case l == nil:
			lanes = append(lanes, at)
		case now.Before(l.next):
			s.lanes.Advance(at, l.next, math.MinInt64)
		case len(lanes) == 0:
			return []store.Lane{at}, l
		default:
			return lanes, nil
		}
	}
	return lanes, nil
}

// acquit removes a lane.
func (s *suspects) acquit(at store.Lane) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.known, at)
}

// claimKeys claims tasks by their keys. rest is why a limit held back some of them, and late reports
// whether the statement timed out.
type claimKeys func(context.Context, []store.Candidate) (claims []*store.Claim, rest store.Rest, late bool, err error)

// A walk is one claim from a suspect lane. It goes through the due tasks of the lane in order.
type walk struct {
	*suspect
	claim   claimKeys
	room    int
	claims  []*store.Claim
	seen    map[int64]bool
	alone   []store.Candidate // refused one by one in this walk
	doubted []store.Candidate // refused one by one before, when perhaps all tasks were refused
	retried []store.Candidate // refused one by one before, and due for a try after the others
	failed  int               // statements
	rest    store.Rest        // why a limit has left tasks, which ends the walk
	blamed  bool              // the refused tasks are to blame: an error shows that, or others were claimed
	err     error             // the last one
	again   time.Time         // when to claim from the lane again, unless the walk is complete
}

// claim claims up to room tasks from a suspect lane. complete reports whether it has tried all due tasks
// of the lane or claimed as many as requested. Otherwise the lane is due again at l.next, and err is the
// reason.
func (s *suspects) claim(ctx context.Context, l *suspect, from store.Source, room int, claim claimKeys) (claims []*store.Claim, rest store.Rest, complete bool, err error) {
	w := &walk{suspect: l, claim: claim, room: room, seen: map[int64]bool{}}
	start := from.Since
	complete = s.walk(ctx, w, from)
	s.refuse(w, from.Lane)
	if !complete {
		s.mu.Lock()
		defer s.mu.Unlock()
		l.next = w.again
		return w.claims, w.rest, false, w.err
	}
	for id, r := range l.refused {
		gone := !w.rest.Limited() && len(w.claims) < room && r.anchor >= start && !w.seen[id]
		if gone || !w.seen[id] && time.Since(r.until) > maxRefusedPause { // the walk does not see tasks before start, until a sweep finds them
			delete(l.refused, id)
		}
	}
	if len(l.refused) == 0 && w.failed == 0 {
		s.acquit(from.Lane)
	}
	return w.claims, w.rest, true, nil
}

// walk walks through a lane, and reports whether it came to the end or claimed as many tasks as requested.
// While statements fail, tasks that were refused before come last, since each further refusal may end
// the walk.
func (s *suspects) walk(ctx context.Context, w *walk, from store.Source) bool {
	failing := w.batchSize.Failures > 0
	for after := int64(math.MinInt64); ; {
		page, err := s.page(ctx, from, after)
		if err != nil {
			w.err, w.again = err, time.Now().Add(retry.ErrorPause(w.batchSize.Failures))
			w.batchSize.Failures++
			return false
		}
		var list []store.Candidate
		for _, c := range page {
			w.seen[c.TaskID] = true
			switch r, known := w.refused[c.TaskID]; {
			case !known || !failing && !time.Now().Before(r.until):
				list = append(list, c)
			case !time.Now().Before(r.until):
				w.retried = append(w.retried, c)
			case r.pause == 0:
				w.doubted = append(w.doubted, c)
			}
		}
		switch {
		case !s.take(ctx, w, list):
			return false
		case w.rest.Limited():
			return true
		case len(w.claims) >= w.room || len(page) < store.MaxBatch:
			return s.take(ctx, w, w.retried) && (!w.blamed || s.take(ctx, w, w.doubted))
		}
		last := page[len(page)-1]
		from.Since, after = last.Anchor, last.TaskID
	}
}

// page returns the next due tasks of a lane.
func (s *suspects) page(ctx context.Context, from store.Source, after int64) ([]store.Candidate, error) {
	ctx, cancel := retry.StatementContext(ctx, retry.StatementTimeout)
	defer cancel()
	return s.table.Candidates(ctx, s.queue, from, after, store.MaxBatch)
}

// take claims tasks of a list in batches. It reports false if the lane has to wait before its next
// statement: after a timeout other lanes come first.
func (s *suspects) take(ctx context.Context, w *walk, list []store.Candidate) bool {
	for len(list) > 0 && len(w.claims) < w.room && !w.rest.Limited() {
		if w.err = ctx.Err(); w.err != nil {
			w.again = time.Now()
			return false
		}
		n := min(len(list), w.batchSize.Size, w.room-len(w.claims))
		claims, rest, late, err := w.claim(ctx, list[:n])
		if err == nil {
			w.batchSize.Accepted()
			w.rest = rest
			for _, c := range list[:n] {
				if !w.rest.Limited() || slices.ContainsFunc(claims, func(own *store.Claim) bool { return own.ID == c.TaskID }) {
					delete(w.refused, c.TaskID)
				}
			}
			if list = list[n:]; len(claims) > 0 {
				w.claims, w.blamed, w.accepted = append(w.claims, claims...), true, time.Now()
			}
			continue
		}
		failure, wait := w.batchSize.Failed(n, s.table.Classify(err), late)
		w.err, w.blamed = err, w.blamed || failure == retry.Refused
		if late {
			wait = max(wait, retry.ErrorPause(0))
		}
		if n == 1 {
			w.alone, list = append(w.alone, list[0]), list[1:]
		}
		if w.failed++; wait > 0 || w.failed >= maxRefusals {
			w.again = time.Now().Add(wait)
			return false
		}
	}
	return true
}

// refuse records the tasks that were refused one by one. A task that might not be to blame is tried again
// soon, after tasks that have not been tried one by one.
func (s *suspects) refuse(w *walk, at store.Lane) {
	now, named := time.Now(), int64(0)
	for _, c := range w.alone {
		old, known := w.refused[c.TaskID]
		r := refusedTask{anchor: c.Anchor, first: now, until: now.Add(doubtPause)}
		if known {
			r.first = old.first
		}
		if w.blamed || w.accepted.After(r.first) {
			r.pause = max(min(2*old.pause, maxRefusedPause), minRefusedPause)
			r.until = now.Add(r.pause)
			w.silent, named = w.silent+1, c.TaskID
		}
		w.refused[c.TaskID] = r
	}
	if named != 0 && now.Sub(w.logged) >= refusedLogEvery {
		s.events.claimRefused(s.queue, at, named, w.silent, w.err)
		w.logged, w.silent = now, 0
	}
}

// claimSuspect claims up to room tasks from a suspect lane, and passes them to the dispatcher.
func (p *Poller) claimSuspect(ctx context.Context, suspect *suspect, at store.Lane, room int) error {
	_, _, end := p.lanes.BeginLimited([]store.Lane{at}, 1)
	defer end()
	from, start, r := p.lanes.BeginClaim([]store.Lane{at})[0], time.Now(), p.Policies.Of(at, func() { p.Hint(at, 0) })
	if r == nil {
		p.learn([]store.Lane{at}, nil, nil, nil, room, start)
		return nil
	}
	from = p.source(from, r)
	from.Limits = p.Limiter.LimitsOf(at)
	claim := func(ctx context.Context, list []store.Candidate) (_ []*store.Claim, rest store.Rest, late bool, err error) {
		sent := time.Now()
		claims, late, err := p.send(ctx, retry.SuspectTimeout, len(list), func(ctx context.Context) ([]*store.Claim, error) {
			result, err := p.Table.ClaimKeys(ctx, p.params(len(list), []store.Source{from}), list)
			if err == nil {
				rest = result.Rests[0]
			}
			return result.Claims, err
		})
		if err == nil && len(claims) > 0 {
			p.Dispatcher.Take(claims, []*control.CompiledPolicy{r}, sent)
		}
		return claims, rest, late, err
	}
	claims, rest, complete, err := p.suspects.claim(ctx, suspect, from, room, claim)
	switch {
	case complete && rest.Limited():
		if len(claims) > 0 {
			p.lanes.Took(at, len(claims))
		}
		p.park(at, rest, start, len(claims) > 0)
		return nil
	case complete:
		p.learn([]store.Lane{at}, []store.Source{from}, []*control.CompiledPolicy{r}, claims, room, start)
		return nil
	}
	p.lanes.Advance(at, suspect.next, math.MinInt64)
	if len(claims) == 0 && retry.KindOf(p.Table.Classify(err), false) == retry.Outage {
		return err
	}
	p.events().claimFailed(p.Queue, err)
	return nil
}
