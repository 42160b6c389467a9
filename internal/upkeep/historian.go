package upkeep

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/internal/retry"
	"github.com/falldue/falldue/internal/store"
)

const (
	// writesWithin is the time after the end of a minute in which all workers write their sums.
	writesWithin = 10 * time.Second
	// measureEvery is the shortest time between two measurements of all tasks, by any worker.
	measureEvery = 55 * time.Second
	// measureFor is how long a worker continues to measure after its last run.
	measureFor = 11 * time.Minute
	// clockEvery is the time between two reads of the database's clock.
	clockEvery = time.Hour
	// addTries is how often sums are added again after contention.
	addTries = 5
	// keepAudit is how long the table of people's actions keeps a row.
	keepAudit = 90 * 24 * time.Hour
)

// Historian is the role that keeps the history of runs. After each minute it adds up the runs of the worker
// and writes the sums in one transaction. It writes nothing for a minute without runs. If the database does not
// answer, the sums of a minute are lost, so that no run counts twice. One of all workers measures how many tasks wait.
type Historian struct {
	tally    *Tally
	handlers handlers
	gauges   measurer
	table    historyTable
	events   events
	phase    time.Duration // the wait after the end of each minute

	ahead   time.Duration // by which the database's clock is ahead
	asked   time.Time     // when the database's clock was last read, or zero
	wrote   time.Time     // when sums were last written
	due     bool          // tasks were due when this worker measured last
	failing bool
}

// historyTable has the statements of a historian.
type historyTable interface {
	Now(ctx context.Context) (time.Time, error)
	AddMinutes(ctx context.Context, sums []store.Sums, back time.Duration) error
	TakeSample(ctx context.Context, age time.Duration) (mine bool, err error)
	PutSample(ctx context.Context, sample store.Sample) error
	Classify(error) dialect.Class
}

// measurer measures all tasks.
type measurer interface {
	Measure(context.Context) ([]store.Gauge, error)
}

// NewHistorian returns a historian of the runs in a worker's tally.
func NewHistorian(tally *Tally, handlers handlers, gauges measurer, table historyTable, log *slog.Logger) *Historian {
	return &Historian{tally: tally, handlers: handlers, gauges: gauges, table: table, events: events{log}, phase: rand.N(writesWithin)}
}

// Work keeps the history until ctx ends, and writes the sums of the last minute then.
func (h *Historian) Work(ctx context.Context) {
	for retry.Pause(ctx, h.untilMinute()) == nil {
		sums, ended := h.tally.Take(), time.Now()
		_ = retry.Pause(ctx, h.phase) // many workers that write in the same moment would wait for each other
		middle := func() time.Duration { return time.Since(ended) + 30*time.Second }
		h.write(ctx, sums, middle)
		if h.awake() {
			if err := h.measure(ctx, middle); err != nil {
				h.report(ctx, err)
			}
		}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveTimeout)
	defer cancel()
	h.write(ctx, h.tally.Take(), func() time.Duration { return 0 })
}

// untilMinute returns the time until the current minute of the database's clock ends. If little of the minute is left,
// it is the one that has just been counted, since the clocks may differ a little. Then the next minute counts.
func (h *Historian) untilMinute() time.Duration {
	now := time.Now().Add(h.ahead)
	left := now.Truncate(time.Minute).Add(time.Minute).Sub(now)
	if left < writesWithin/2 {
		left += time.Minute
	}
	return left
}

// write adds sums to the spans that include the time back() ago.
func (h *Historian) write(ctx context.Context, sums []store.Sums, back func() time.Duration) {
	if len(sums) == 0 {
		return
	}
	h.wrote = time.Now()
	err := h.add(ctx, sums, back())
	for try := 1; h.table.Classify(err) == dialect.Contention && try < addTries; try++ {
		_ = retry.Pause(ctx, retry.ErrorPause(try))
		err = h.add(ctx, sums, back())
	}
	if err == nil {
		err = h.askClock(ctx)
	}
	h.report(ctx, err)
}

func (h *Historian) add(ctx context.Context, sums []store.Sums, back time.Duration) error {
	ctx, cancel := retry.StatementContext(ctx, retry.StatementTimeout)
	defer cancel()
	return h.table.AddMinutes(ctx, sums, back)
}

// askClock compares the clocks.
func (h *Historian) askClock(ctx context.Context) error {
	if !h.asked.IsZero() && time.Since(h.asked) < clockEvery {
		return nil
	}
	ctx, cancel := retry.StatementContext(ctx, retry.StatementTimeout)
	defer cancel()
	now, err := h.table.Now(ctx)
	if err == nil {
		h.asked, h.ahead = time.Now(), time.Until(now)
	}
	return err
}

// awake reports whether the worker helps to measure: it has run tasks recently, or tasks are due and
// do not run. An idle worker sends nothing.
func (h *Historian) awake() bool {
	running := 0
	for _, n := range h.handlers.Running() {
		running += n
	}
	return h.due || running > 0 || !h.wrote.IsZero() && time.Since(h.wrote) < measureFor
}

// measure measures all tasks if no worker has done so for this minute.
func (h *Historian) measure(ctx context.Context, back func() time.Duration) error {
	short, cancel := retry.StatementContext(ctx, retry.StatementTimeout)
	mine, err := h.table.TakeSample(short, measureEvery)
	cancel()
	if err != nil || !mine {
		h.due = h.due && err != nil // the measuring worker watches the due tasks
		return err
	}
	start := time.Now()
	sample := store.Sample{}
	if sample.Gauges, err = h.gauges.Measure(ctx); err != nil {
		return err
	}
	sample.Took, h.due = time.Since(start), false
	for _, g := range sample.Gauges {
		h.due = h.due || g.OldestDue > 0
	}
	short, cancel = retry.StatementContext(ctx, retry.StatementTimeout)
	defer cancel()
	if err := h.table.PutSample(short, sample); err != nil {
		return err
	}
	return h.table.AddMinutes(short, sample.Measured(), back())
}

// report logs the first of several failures in a row.
func (h *Historian) report(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return // the end of ctx may have caused the error
	}
	if err != nil {
		h.events.historyFailed(err, h.failing)
	}
	h.failing = err != nil
}
