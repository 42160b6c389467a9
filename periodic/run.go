package periodic

import (
	"context"
	"sync"
	"time"
)

// run is one call of [Scheduler.Run]. Each tick is handled in a goroutine of its own, so that
// a schedule whose row is locked delays no other.
type run struct {
	*Scheduler
	busy    map[string]bool // schedules whose ticks are being handled
	refused map[string]refusal
	ended   chan ended
	all     sync.WaitGroup
}

// refusal is a schedule whose task the database does not take.
type refusal struct {
	times int
	until time.Time // when to try again
}

// ended is what became of a tick.
type ended struct {
	name string
	err  error
}

func newRun(s *Scheduler) *run {
	return &run{Scheduler: s, busy: map[string]bool{}, refused: map[string]refusal{}, ended: make(chan ended, len(s.defined))}
}

// loop handles ticks until ctx ends, and waits for those that are being handled.
func (r *run) loop(ctx context.Context) {
	defer r.all.Wait()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case e := <-r.ended:
			r.note(ctx, e)
		}
		wait, err := r.start(ctx)
		if err != nil && ctx.Err() == nil {
			r.log.Warn("falldue: cannot look for periodic tasks", "error", err)
			wait = time.Second
		}
		timer.Reset(max(wait, time.Millisecond))
	}
}

// start begins the steps that are due, and returns how long it is until the next one, or until
// the next look.
func (r *run) start(ctx context.Context) (wait time.Duration, err error) {
	steps, err := r.look(ctx)
	if err != nil {
		return 0, err
	}
	wait = lookEvery
	for _, one := range steps {
		if r.busy[one.Name] {
			continue
		}
		until := max(one.wait(), time.Until(r.refused[one.Name].until))
		if until > 0 {
			wait = min(wait, until)
			continue
		}
		r.busy[one.Name] = true
		r.all.Go(func() {
			_, err := r.take(ctx, one)
			r.ended <- ended{one.Name, err}
		})
	}
	return wait, nil
}

// note notes what became of a tick. A schedule whose task the database has not taken is left
// alone for a while.
func (r *run) note(ctx context.Context, e ended) {
	delete(r.busy, e.name)
	if e.err == nil {
		delete(r.refused, e.name)
		return
	}
	was := r.refused[e.name]
	rest := min(leastRest<<min(was.times, 10), maxRest)
	r.refused[e.name] = refusal{was.times + 1, time.Now().Add(rest)}
	if ctx.Err() == nil {
		r.log.Error("falldue: cannot enqueue a periodic task; other schedules go on", "schedule", e.name, "error", e.err, "again_in", rest)
	}
}
