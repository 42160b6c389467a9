package run

import (
	"sync"
	"time"
)

// exhaustedLogEvery is how often a worker reports tasks that became dead because a limit is
// lower now than when they failed. After a deploy there may be many thousands.
const exhaustedLogEvery = 5 * time.Second

// exhausted identifies a limit that made tasks dead without running them.
type exhausted struct {
	queue, kind string
	limit       string // see [outcome.ClaimResult.LimitText]
	allowed     int
}

// exhaustedLog counts tasks that became dead without running, and reports them together.
type exhaustedLog struct {
	events events

	mu     sync.Mutex
	counts map[exhausted]int
}

// add counts a task. The first task after a report schedules the next report.
func (d *exhaustedLog) add(why exhausted) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.counts) == 0 {
		d.counts = map[exhausted]int{}
		time.AfterFunc(exhaustedLogEvery, d.report)
	}
	d.counts[why]++
}

// report reports the tasks that were counted since the last report.
func (d *exhaustedLog) report() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for why, tasks := range d.counts {
		d.events.beyondLimit(why.queue, why.kind, why.limit, why.allowed, tasks)
	}
	d.counts = nil
}
