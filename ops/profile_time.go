package ops

import (
	"context"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/dialect"
)

// perMillion is how long a profile took for a million waiting tasks on two cores, as
// docs/command-line.md has it.
var perMillion = map[dialect.Name]time.Duration{
	dialect.Postgres: 4 * time.Second, dialect.MySQL: 1900 * time.Millisecond, dialect.MariaDB: 2800 * time.Millisecond, dialect.SQLite: 4500 * time.Millisecond,
}

// ProfileTime returns about how many tasks wait, as [falldue.Queue.CountsAbout] does, and
// about how long [Inspector.Profile] takes to read them. It reckons as long for each task as
// the last profile of this Inspector took or, before the first one, as it took on a machine
// with two cores. A server that is busy, or reads from its disk, takes longer.
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
	each, known := perMillion[i.store.Server().Name()]
	if !known {
		each = 5 * time.Second
	}
	return tasks, time.Duration(float64(tasks) / 1e6 * float64(each)), nil
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
