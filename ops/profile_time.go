package ops

import (
	"context"
	"time"

	"github.com/falldue/falldue"
)

// perMillion is about how long a profile takes for a million waiting tasks on two cores:
// docs/command-line.md has the times of each engine.
const perMillion = 4 * time.Second

// ProfileTime estimates how many tasks wait, with [Ops.EstimateCounts], and how long
// [Ops.Profile] takes to read them. The time for each task comes from the last profile of this Ops
// or, before the first profile, from measurements on a machine with two cores. A busy server, or a server that reads
// from its disk, takes longer.
func (o *Ops) ProfileTime(ctx context.Context) (tasks int64, takes time.Duration, err error) {
	counts, err := o.EstimateCounts(ctx)
	if err != nil {
		return 0, 0, err
	}
	for _, c := range counts {
		if c.State == falldue.StateOpen || c.State == falldue.StateSnoozed {
			tasks += c.Tasks
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.perTask > 0 {
		return tasks, time.Duration(float64(tasks) * o.perTask * float64(time.Second)), nil
	}
	return tasks, time.Duration(float64(tasks) / 1e6 * float64(perMillion)), nil
}

// A profile of fewer than fewProfiled tasks does not show the time for each task.
const fewProfiled = 10_000

// took remembers how long a profile took.
func (o *Ops) took(tasks int64, d time.Duration) {
	if tasks < fewProfiled {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.perTask = d.Seconds() / float64(tasks)
}
