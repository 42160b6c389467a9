package periodic

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/falldue/falldue/internal/retry"
	"github.com/falldue/falldue/internal/store"
)

const (
	// maxAlone is how many steps are taken alone at a time. Each needs a connection.
	maxAlone = 8
	// leastPause is the shortest time between two reads of schedules.
	leastPause = 10 * time.Millisecond
)

// run is one call of [Scheduler.Run]. Ticks that are due together are taken with one statement.
// A schedule that needs a separate statement has its own goroutine, so that a locked row delays
// no other schedule.
type run struct {
	*Scheduler
	readAt  time.Time            // when all schedules were last read
	due     map[string]time.Time // when the steps of schedules are due, by this process's clock
	passed  map[string]int64     // ticks that were not taken with others
	busy    map[string]bool      // schedules whose steps are being taken alone
	refused map[string]int       // how often the database has not taken the task of a schedule, one time after the other
	alone   chan struct{}        // has an element for each step that is being taken
	says    talk                 // what is still to be said
	talking bool
	ended   chan ended
	all     sync.WaitGroup
}

// ended is the result of a step that was taken alone, or of a talk if name is "".
type ended struct {
	name string
	wait time.Duration
	err  error
}

func newRun(s *Scheduler) *run {
	return &run{
		Scheduler: s, due: map[string]time.Time{}, passed: map[string]int64{}, busy: map[string]bool{}, refused: map[string]int{},
		alone: make(chan struct{}, maxAlone), ended: make(chan ended, len(s.defined)+1),
	}
}

// loop takes steps until ctx ends, and waits for those that are being taken.
func (r *run) loop(ctx context.Context) {
	defer r.all.Wait()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
			if err := r.start(ctx); err != nil && ctx.Err() == nil {
				r.log.Warn("falldue: cannot read schedules", retry.FailedIn("schedules", err))
				r.readAt = time.Now().Add(time.Second - readEvery)
				clear(r.due)
			}
		case e := <-r.ended:
			r.note(ctx, e)
		}
		next := r.readAt.Add(readEvery)
		for name, at := range r.due {
			if at.Before(next) && !r.busy[name] {
				next = at
			}
		}
		timer.Reset(max(time.Until(next), leastPause))
	}
}

// start takes the steps that are due. It reads their schedules, and all every now and then, to
// notice those that have changed.
func (r *run) start(ctx context.Context) error {
	now := time.Now()
	var names []string // all
	if now.Sub(r.readAt) < readEvery {
		for name, at := range r.due {
			if !at.After(now) && !r.busy[name] {
				names = append(names, name)
			}
		}
		if len(names) == 0 {
			return nil
		}
		if len(names) > store.MaxBatch {
			names = nil
		}
	}
	steps, says, err := r.nextSteps(ctx, names)
	if err != nil {
		return err
	}
	r.saySoon(ctx, says)
	if names == nil {
		r.readAt = now
		names = slices.Collect(maps.Keys(r.defined))
	}
	for _, name := range names {
		if r.refused[name] == 0 || !r.due[name].After(now) { // it does not rest
			delete(r.due, name)
		}
	}
	var due []step
	for _, one := range steps {
		wait := one.wait()
		switch _, rests := r.due[one.Name]; {
		case r.busy[one.Name] || rests:
		case wait > 0:
			delete(r.refused, one.Name)
			r.due[one.Name] = now.Add(wait)
		case r.refused[one.Name] > 0 || r.passed[one.Name] == one.Next:
			r.takeAlone(ctx, one)
		default:
			due = append(due, one)
		}
	}
	for _, one := range r.together(ctx, due) {
		switch {
		case one.taken:
			r.due[one.Name] = now.Add(one.wait)
		case one.missed:
			r.passed[one.Name], r.due[one.Name] = one.Next, now
		default:
			r.takeAlone(ctx, one.step)
		}
	}
	return nil
}

// saySoon says something in a goroutine, or when that is free: a row may be locked.
func (r *run) saySoon(ctx context.Context, t talk) {
	r.says.ask, r.says.answer = append(r.says.ask, t.ask...), append(r.says.answer, t.answer...)
	if r.talking || len(r.says.ask)+len(r.says.answer) == 0 {
		return
	}
	r.talking, t, r.says = true, r.says, talk{}
	r.all.Go(func() { r.ended <- ended{err: r.say(ctx, t)} })
}

// takeAlone takes a step in a goroutine.
func (r *run) takeAlone(ctx context.Context, one step) {
	r.busy[one.Name] = true
	r.all.Go(func() {
		select {
		case <-ctx.Done():
			return
		case r.alone <- struct{}{}:
		}
		wait, err := r.take(ctx, one)
		<-r.alone
		r.ended <- ended{one.Name, wait, err}
	})
}

// note notes what became of a step that was taken alone. A schedule whose task the database has
// not taken is left alone for a while.
func (r *run) note(ctx context.Context, e ended) {
	if e.name == "" {
		r.talking = false
		if e.err != nil && ctx.Err() == nil {
			r.log.Warn("falldue: cannot ask other processes for their schedules", retry.FailedIn("schedules", e.err))
		}
		return
	}
	delete(r.busy, e.name)
	if e.err == nil {
		delete(r.refused, e.name)
		r.due[e.name] = time.Now().Add(e.wait)
		return
	}
	rest := min(leastRest<<min(r.refused[e.name], 10), maxRest)
	r.refused[e.name]++
	r.due[e.name] = time.Now().Add(rest)
	if ctx.Err() == nil {
		r.log.Error("falldue: cannot enqueue a periodic task; other schedules continue", "schedule", e.name, "error", e.err, "again_in", rest)
	}
}
