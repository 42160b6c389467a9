package ops

import (
	"context"
	"fmt"
	"time"

	"github.com/falldue/falldue/internal/store"
)

// HistoryFilter selects the part of the history that [Ops.History] returns.
type HistoryFilter struct {
	// From and To limit the time in which spans begin, by the database's clock. To defaults to now, and From to an
	// hour before To.
	From, To time.Time
	// Step is the length of a span: a minute, ten minutes or an hour. Defaults to a minute. Spans of a minute are kept for
	// 26 hours, spans of ten minutes for 8 days, and spans of an hour for 90 days.
	Step time.Duration
	// Queue and Kind select a queue and a kind. "" means all.
	Queue, Kind string
	// ByQueue returns a separate [Span] for each queue, and ByKind for each queue and kind, instead of one for all.
	ByQueue, ByKind bool
}

// Span counts the runs in a period of time.
type Span struct {
	At          time.Time // when the span began
	Queue, Kind string    // "" in a span of all queues or kinds

	// Started is how many runs began. The other fields count the runs that ended, by outcome: the task is done, the
	// attempt failed and the task waits for the next one, the task is dead, snoozed or cancelled, or the lease was
	// lost.
	Started, Done, Failed, Dead, Snoozed, Cancelled, Lost int64
	// Expired is how many tasks had not started in time, and ended without a run.
	Expired int64
	// Run is how long handlers ran, and Lag is the time between a task's due time and the start of its handler.
	Run, Lag Times

	// Measured reports whether tasks were counted in the span. Waiting and DeadNow are estimates of the unfinished and the
	// dead tasks at the end of the span, and OldestDue is the longest time for which a task had been due.
	Measured         bool
	Waiting, DeadNow int64
	OldestDue        time.Duration
}

// Ended returns how many runs ended in the span.
func (s Span) Ended() int64 {
	return s.Done + s.Failed + s.Dead + s.Snoozed + s.Cancelled + s.Lost
}

// Times summarizes durations, such as of runs.
type Times struct {
	Sum, Max time.Duration
	// In counts the durations up to 10 ms, 100 ms, 1 s, 10 s, 1 min, 10 min and 1 h. Its last element counts longer
	// durations.
	In [8]int64
}

// timesBounds are the bounds of the buckets of Times.
var timesBounds = [...]time.Duration{0, 10 * time.Millisecond, 100 * time.Millisecond, time.Second, 10 * time.Second, time.Minute, 10 * time.Minute, time.Hour}

// Count returns the number of durations.
func (t Times) Count() (n int64) {
	for _, in := range t.In {
		n += in
	}
	return n
}

// Mean returns the mean of the durations, or 0 if there are none.
func (t Times) Mean() time.Duration {
	if n := t.Count(); n > 0 {
		return t.Sum / time.Duration(n)
	}
	return 0
}

// Quantile estimates the duration that a share of all durations, such as 0.95, does not exceed. It returns 0 if there
// are no durations.
func (t Times) Quantile(share float64) time.Duration {
	below, want := 0.0, share*float64(t.Count())
	for i, in := range t.In {
		if n := float64(in); n > 0 && below+n >= want {
			from, to := timesBounds[i], t.Max
			if i+1 < len(timesBounds) {
				to = min(timesBounds[i+1], t.Max)
			}
			return min(from, to) + time.Duration((want-below)/n*float64(to-min(from, to)))
		}
		below += float64(in)
	}
	return 0
}

// Add returns a summary of the durations of t and other together.
func (t Times) Add(other Times) Times {
	t.Sum, t.Max = t.Sum+other.Sum, max(t.Max, other.Max)
	for i := range t.In {
		t.In[i] += other.In[i]
	}
	return t
}

// History returns how many runs ended in each span of time, and how. Workers write these numbers up to 70 seconds late.
// The numbers have gaps where the database was unavailable. A span is missing if no run ended and no worker measured
// the waiting tasks in it. A worker with [falldue.Config.NoHistory] writes nothing. The cost grows with the number of
// spans, queues and kinds, and not with the number of tasks.
//
// After the first 200 kinds of a queue in a minute, all further kinds count as the kind "".
func (o *Ops) History(ctx context.Context, f HistoryFilter) ([]Span, error) {
	if f.Step == 0 {
		f.Step = time.Minute
	}
	if store.Steps[f.Step] == 0 {
		return nil, fmt.Errorf("ops: Step %v of the history: must be a minute, ten minutes or an hour", f.Step)
	}
	if f.To.IsZero() {
		now, err := o.Now(ctx)
		if err != nil {
			return nil, err
		}
		f.To = now
	}
	if f.From.IsZero() {
		f.From = f.To.Add(-time.Hour)
	}
	rows, err := o.store.Minutes(ctx, store.MinuteParams(f))
	if err != nil {
		return nil, err
	}
	list := make([]Span, len(rows))
	for i, r := range rows {
		list[i] = Span{
			At: store.Time(r.At), Queue: r.Queue, Kind: r.Kind,
			Started: r.Started, Done: r.Done, Failed: r.Failed, Dead: r.Dead, Snoozed: r.Snoozed, Cancelled: r.Cancelled, Lost: r.Lost, Expired: r.Expired,
			Run: timesOf(r.Run), Lag: timesOf(r.Lag),
			Measured: r.Waiting.Valid, Waiting: r.Waiting.V, DeadNow: r.DeadNow.V, OldestDue: store.Duration(r.OldestDue.V),
		}
	}
	return list, nil
}

func timesOf(d store.Distribution) Times {
	return Times{Sum: store.Duration(d.Sum), Max: store.Duration(d.Max), In: d.In}
}
