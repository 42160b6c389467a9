package ops

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/store"
)

// What is the kind of an [Event]: the change of its task.
type What string

// The kinds of events.
const (
	// Added: the task was enqueued.
	Added What = "new"
	// Started: a worker has claimed the task.
	Started What = "started"
	// Failed: an attempt failed, and the task is retried, under its policy or at a time that its
	// handler has set.
	Failed What = "failed"
	// Snoozed: the handler asked for a snooze.
	Snoozed What = "snoozed"
	// Dead, Done and Cancelled: the task is finished.
	Dead      What = "dead"
	Done      What = "done"
	Cancelled What = "cancelled"
	// Gone: the task no longer exists. It was done and deleted, or a person deleted it.
	Gone What = "gone"
)

// Event is a change of a task.
type Event struct {
	// At is when Watch found the change, by the database's clock.
	At    time.Time
	What  What
	ID    int64
	Queue string
	Kind  string
	Key   string
	// Attempts is the number of attempts so far, including a running attempt. Runs that ended with a snooze don't count.
	Attempts int
	// Worker is the ID of the worker that has started the task.
	Worker string
	// Error is the beginning of the text of the error with which the task failed.
	Error string
}

const (
	// mostWatched is how many tasks are watched by their IDs, and mostInLane how many are
	// read of a lane at a time. mostLanes is how many lanes are read.
	mostWatched, mostInLane, mostLanes = 5000, 500, 500
	// watchMargin is how much later than its anchor a task may be committed and be seen.
	watchMargin = 2 * time.Second
	// rememberFor is how long a finished task is remembered.
	rememberFor = time.Minute
)

// Watch calls f with the events of tasks until ctx ends, and then returns nil. An error of f, or of the database, ends
// Watch earlier. Watch polls at intervals of every (at least a millisecond). So it misses a task that was enqueued and
// deleted between two polls, and sees only the last of several changes between them. Each poll reads new
// tasks by their IDs, failed and finished tasks from up to 500 lanes with 500 tasks in each, and up to 5,000 tasks that
// Watch has seen before. On TiDB, where IDs do not ascend, Watch first sees a task when it starts.
func (o *Ops) Watch(ctx context.Context, every time.Duration, f func(Event) error) error {
	w := watch{o: o, known: map[int64]*watched{}}
	if err := w.begin(ctx); err != nil && ctx.Err() == nil {
		return err
	}
	tick := time.NewTicker(max(every, time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		events, err := w.poll(ctx)
		if err != nil && ctx.Err() == nil {
			return err
		}
		for _, e := range events {
			if err := f(e); err != nil {
				return err
			}
		}
	}
}

// watch is the state of a Watch.
type watch struct {
	o      *Ops
	lastID int64
	last   time.Time // of the last poll
	known  map[int64]*watched
}

// watched is a task as it was seen last.
type watched struct {
	store.Watched
	over time.Time // when it was seen to be finished; zero if it is not
}

// begin reads the present state, which causes no events.
func (w *watch) begin(ctx context.Context) (err error) {
	news, err := w.o.store.News(ctx, 0)
	if err != nil {
		return err
	}
	w.lastID = news.Task
	_, err = w.poll(ctx)
	return err
}

// poll reads what may have changed, and returns the changes, in the order of IDs.
func (w *watch) poll(ctx context.Context) (events []Event, err error) {
	start, first := time.Now(), w.last.IsZero()
	found := map[int64]store.Watched{}
	note := func(list []store.Watched) {
		for _, t := range list {
			if old, ok := found[t.ID]; !ok || old.Fence <= t.Fence {
				found[t.ID] = t
			}
		}
	}
	back := watchMargin
	if !first {
		back += start.Sub(w.last)
	}
	for more := true; more; {
		added, err := w.o.store.WatchNew(ctx, w.lastID, mostInLane)
		if err != nil {
			return nil, err
		}
		for _, t := range added {
			w.lastID = t.ID
			events = append(events, eventOf(Added, t))
			w.known[t.ID] = &watched{Watched: t}
			w.known[t.ID].Fence, w.known[t.ID].Attempts, w.known[t.ID].State, w.known[t.ID].ClaimedBy = 0, 0, string(falldue.StateOpen), ""
		}
		note(added)
		more = len(added) == mostInLane
	}
	lanes, err := w.readLanes(ctx, back)
	if err != nil {
		return nil, err
	}
	note(lanes)
	var asked []int64
	for id, t := range w.known {
		if _, ok := found[id]; !ok && t.over.IsZero() {
			asked = append(asked, id)
		}
	}
	slices.Sort(asked)
	present, err := w.o.store.WatchTasks(ctx, asked)
	if err != nil {
		return nil, err
	}
	note(present)
	for _, id := range asked {
		if _, ok := found[id]; !ok {
			gone := *w.known[id]
			gone.ClaimedBy, gone.LastError, gone.Now = "", "", gone.Now+time.Since(w.last).Microseconds()
			events = append(events, eventOf(Gone, gone.Watched))
			w.known[id].over = start
		}
	}
	for _, t := range found {
		what := w.changed(t, start)
		if what == Snoozed && !first && t.LastError != "" && t.Attempts > 0 {
			if what, err = w.snoozedOrFailed(ctx, t); err != nil {
				return nil, err
			}
		}
		if what != "" && !first {
			events = append(events, eventOf(what, t))
		}
	}
	w.last = start
	w.forget(start)
	slices.SortStableFunc(events, func(a, b Event) int { return cmp.Compare(a.ID, b.ID) })
	return events, nil
}

// readLanes reads the tasks that were claimed, that failed or that ended lately.
func (w *watch) readLanes(ctx context.Context, back time.Duration) (list []store.Watched, err error) {
	queues, err := w.o.store.Queues(ctx)
	if err != nil {
		return nil, err
	}
	lanes := 0
	for _, queue := range queues {
		heads, err := w.o.store.NewLaneFinder().FindAll(ctx, queue)
		if err != nil {
			return nil, err
		}
		for _, state := range []falldue.State{falldue.StateDead, falldue.StateCancelled, falldue.StateDone} {
			finished, err := w.o.store.FinishedLanes(ctx, queue, string(state))
			if err != nil {
				return nil, err
			}
			heads = append(heads, finished...)
		}
		for _, h := range heads {
			untried := h.State == string(falldue.StateOpen) && h.Attempts == 0 // found by their IDs
			if h.Corrupt != nil || untried || lanes == mostLanes {
				continue
			}
			lanes++
			tasks, err := w.o.store.WatchLane(ctx, queue, h.Lane, back, mostInLane)
			if err != nil {
				return nil, err
			}
			list = append(list, tasks...)
		}
	}
	return list, nil
}

// changed notes a task, and returns the task's event, or "".
func (w *watch) changed(t store.Watched, now time.Time) (what What) {
	old, known := w.known[t.ID]
	if known && old.Fence == t.Fence && old.State == t.State && old.ClaimedBy == t.ClaimedBy {
		return ""
	}
	next := &watched{Watched: t}
	switch state := falldue.State(t.State); {
	case state == falldue.StateDead, state == falldue.StateCancelled, state == falldue.StateDone:
		next.over = now
		if !known || old.State != t.State {
			what = What(state)
		}
	case t.ClaimedBy != "":
		what = Started
	case state == falldue.StateSnoozed:
		what = Snoozed
	case t.Attempts > 0 && t.LastError != "" && (!known || t.Attempts >= old.Attempts):
		what = Failed
	}
	w.known[t.ID] = next
	return what
}

// snoozedOrFailed returns whether the last run of a snoozed task failed: its handler has set the time of
// the next attempt.
func (w *watch) snoozedOrFailed(ctx context.Context, t store.Watched) (What, error) {
	attempts, err := w.o.store.Attempts(ctx, t.ID)
	if err == nil && slices.ContainsFunc(attempts, func(a store.Attempt) bool { return a.Fence == t.Fence }) {
		return Failed, nil
	}
	return Snoozed, err
}

// forget drops tasks that finished long ago, and some waiting tasks if there are too many.
func (w *watch) forget(now time.Time) {
	maps.DeleteFunc(w.known, func(_ int64, t *watched) bool { return !t.over.IsZero() && now.Sub(t.over) > rememberFor })
	maps.DeleteFunc(w.known, func(_ int64, t *watched) bool { return len(w.known) > mostWatched && t.ClaimedBy == "" })
}

func eventOf(what What, t store.Watched) Event {
	e := Event{At: store.Time(t.Now), What: what, ID: t.ID, Queue: t.Queue, Kind: t.Kind, Key: t.Key, Attempts: t.Attempts}
	switch what {
	case Started:
		e.Worker = t.ClaimedBy
	case Failed, Dead:
		e.Error = t.LastError
	case Added:
		e.Attempts = 0
	}
	return e
}
