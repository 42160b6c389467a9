package ops

import (
	"context"
	"time"

	"github.com/falldue/falldue"
)

// perMillion is about how long a profile takes for a million waiting tasks on two cores:
// docs/command-line.md has the times of each engine.
const perMillion = 4 * time.Second

// ProfileTime returns about how many tasks wait, as [falldue.Queue.CountsAbout] does, and
// about how long [Inspector.Profile] takes to read them. The time for each task is that of
// the last profile of this Inspector or, before the first one, that of a machine with two
// cores. A server that is busy, or reads from its disk, takes longer.
func (i *Inspector) ProfileTime(ctx context.Context) (tasks int64, takes time.Duration, err error) {
	counts, err := i.queue.CountsAbout(ctx)
	if err != nil {
		return 0, 0, err
	}
	for _, c := range counts {
		if c.State == falldue.Open || c.State == falldue.Snoozed {
			tasks += c.Tasks
		}
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.perTask > 0 {
		return tasks, time.Duration(float64(tasks) * i.perTask * float64(time.Second)), nil
	}
	return tasks, time.Duration(float64(tasks) / 1e6 * float64(perMillion)), nil
}

// fewProfiled is the number of tasks below which a profile says nothing about the time for
// each.
const fewProfiled = 10_000

// took remembers how long a profile took.
func (i *Inspector) took(tasks int64, d time.Duration) {
	if tasks < fewProfiled {
		return
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.perTask = d.Seconds() / float64(tasks)
}
