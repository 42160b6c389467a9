package signals

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/hooks"
	"github.com/falldue/falldue/internal/pattern"
	"github.com/falldue/falldue/ops"
	"github.com/falldue/falldue/periodic"
)

const (
	// sampledDue is how long tasks have been due that wait.
	sampledDue = time.Second
	// maxPairs, maxSubjects and maxSchedules bound the series of one metric.
	maxPairs, maxSubjects, maxSchedules = 1000, 100, 1000
	// measured is how old the counts of workers may be, which measure once a minute.
	measured = 90 * time.Second
	// remembered is how long a queue and kind without tasks is exported as 0.
	remembered = time.Hour
)

// state is the state of a database. Processes share it as JSON.
type state struct {
	At     time.Time           `json:"at"` // by the database's clock
	Took   time.Duration       `json:"took_ns"`
	Series map[string][]sample `json:"series"` // by the names of metrics
	Seen   []seen              `json:"seen"`
}

// sample is a value of a metric.
type sample struct {
	Labels []string `json:"l,omitempty"`
	Value  float64  `json:"v"`
}

// seen is when a kind last had tasks in a queue, or a live worker for it.
type seen struct {
	ops.QueueKind

	At time.Time `json:"at"`
}

// decode returns a state that a process has stored, which may be none.
func decode(text string) (st state, err error) {
	if text == "" {
		return st, nil
	}
	if err := json.Unmarshal([]byte(text), &st); err != nil {
		return state{}, fmt.Errorf("falldue: decode the stored state of the metrics (table sample): %w", err)
	}
	return st, nil
}

// values calls f with each value. Metrics of another release are left out.
func (st state) values(f func(m *Metric, v float64, values ...string)) {
	for _, m := range Metrics() {
		for _, one := range st.Series[m.Name] {
			if len(one.Labels) == len(m.Labels) {
				f(m, one.Value, one.Labels...)
			}
		}
	}
}

// compute reads the state of a queue's database. It remembers the kinds that a former state has seen.
func compute(ctx context.Context, q *falldue.Queue, former []seen) (st state, err error) {
	o := ops.New(q) // which remembers no estimates
	counts, err := counts(ctx, q, o)
	if err != nil {
		return st, err
	}
	monitor := o.NewMonitor()
	pulse, err := monitor.Read(ctx)
	for err == nil && pulse.More {
		pulse, err = monitor.Read(ctx)
	}
	if err != nil {
		return st, err
	}
	due, err := monitor.Overdue(ctx, sampledDue)
	if err != nil {
		return st, err
	}
	schedules, err := periodic.List(ctx, q)
	if err != nil {
		return st, err
	}
	st = state{At: pulse.At, Series: map[string][]sample{}}
	st.addKinds(former, counts, due, pulse)
	st.addWorkers(pulse)
	for _, p := range pulse.Pauses[:min(len(pulse.Pauses), maxSubjects)] {
		st.add(paused, 1, p.String())
	}
	for _, o := range pulse.Overrides[:min(len(pulse.Overrides), maxSubjects)] {
		hold := "0"
		if ops.IsHold(o.Formula) {
			hold = "1"
		}
		st.add(overrideAge, max(pulse.At.Sub(o.At), 0).Seconds(), o.String(), hold)
	}
	for _, schedule := range schedules[:min(len(schedules), maxSchedules)] {
		late := max(schedule.Now.Sub(schedule.Next), 0)
		if schedule.Paused {
			late = 0
		}
		st.add(scheduleLate, late.Seconds(), schedule.Name)
	}
	return st, nil
}

// add adds a value.
func (st *state) add(m *Metric, v float64, labels ...string) {
	st.Series[m.Name] = append(st.Series[m.Name], sample{labels, v})
}

// counts returns what workers have measured of late, or else estimates: of what a sample reads, these
// alone cost more the more tasks there are.
func counts(ctx context.Context, q *falldue.Queue, o *ops.Ops) (list []ops.Count, err error) {
	stored, err := hooks.StoreOf(q).Sample(ctx)
	if err != nil || stored.Age > measured || len(stored.Gauges) == 0 {
		return o.EstimateCounts(ctx)
	}
	for _, g := range stored.Gauges {
		for state, n := range g.Tasks {
			list = append(list, ops.Count{Queue: g.Queue, Kind: g.Kind, State: falldue.State(state), Tasks: n, Estimated: true})
		}
	}
	return list, nil
}

// addKinds adds the values of each queue and kind. One that had tasks within the last hour, or that a
// live worker handles, has values of 0.
func (st *state) addKinds(former []seen, counts []ops.Count, due []ops.Overdue, pulse ops.Pulse) {
	known := map[ops.QueueKind]time.Time{}
	for _, s := range former {
		if pulse.At.Sub(s.At) <= remembered {
			known[s.QueueKind] = s.At
		}
	}
	see := func(at ops.QueueKind) {
		if _, has := known[at]; has || len(known) < maxPairs {
			known[at] = pulse.At
		}
	}
	for _, c := range counts {
		see(ops.QueueKind{Queue: c.Queue, Kind: c.Kind})
	}
	for _, w := range pulse.Workers {
		for _, queue := range slices.DeleteFunc(w.QueueNames(), pattern.Is) {
			for _, kind := range w.KindNames() {
				if at := (ops.QueueKind{Queue: queue, Kind: kind}); len(w.Queues) == 1 || !known[at].IsZero() {
					see(at)
				}
			}
		}
	}
	none := map[ops.QueueKind]bool{}
	for _, at := range ops.Unhandled(pulse.Queues, pulse.Workers) {
		none[at] = true
		see(at)
	}
	waiting, delayed := map[ops.QueueKind]int{}, map[ops.QueueKind]int{}
	oldest := map[ops.QueueKind]float64{}
	for _, o := range due {
		at := ops.QueueKind{Queue: o.Queue, Kind: o.Kind}
		if !o.Stuck() {
			delayed[at] += o.Tasks
			continue
		}
		waiting[at] += o.Tasks
		oldest[at] = max(oldest[at], pulse.At.Sub(o.DueSince).Seconds())
	}
	type inState struct {
		ops.QueueKind

		state falldue.State
	}
	inStates := map[inState]int64{}
	for _, c := range counts {
		inStates[inState{ops.QueueKind{Queue: c.Queue, Kind: c.Kind}, c.State}] = c.Tasks
	}
	for at, last := range known {
		st.Seen = append(st.Seen, seen{at, last})
		st.add(oldestDue, oldest[at], at.Queue, at.Kind)
		st.add(dueTasks, float64(waiting[at]), at.Queue, at.Kind)
		st.add(limited, number(delayed[at] > 0 && waiting[at] == 0), at.Queue, at.Kind)
		st.add(unhandled, number(none[at]), at.Queue, at.Kind)
		for _, state := range sampledStates {
			st.add(tasks, float64(inStates[inState{at, state}]), at.Queue, at.Kind, string(state))
		}
	}
}

// sampledStates are the states of tasks.
var sampledStates = []falldue.State{falldue.StateBlocked, falldue.StateOpen, falldue.StateSnoozed, falldue.StateDone, falldue.StateDead, falldue.StateCancelled}

// addWorkers adds the values of each queue with tasks or workers. Handlers that the queues of a pattern share count
// once, under the pattern.
func (st *state) addWorkers(pulse ops.Pulse) {
	handlers := map[string]ops.WorkerQueue{} // by queue or pattern
	for _, w := range pulse.Workers {
		for name, q := range w.Queues {
			sum := handlers[name]
			if w.Live() && !w.Stopping {
				sum.Running, sum.Concurrency = sum.Running+q.Running, sum.Concurrency+q.Concurrency
			}
			handlers[name] = sum
		}
	}
	queues := slices.Collect(maps.Keys(handlers))
	for _, q := range pulse.Queues {
		queues = append(queues, q.Name)
	}
	slices.Sort(queues)
	for _, queue := range slices.Compact(queues) {
		workers := len(ops.Handlers(pulse.Workers, queue, "").Workers)
		st.add(workersGauge, float64(workers), queue)
		if sum, named := handlers[queue]; named || workers == 0 {
			st.add(handlersRunning, float64(sum.Running), queue)
			st.add(handlersLimit, float64(sum.Concurrency), queue)
		}
	}
}

func number(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
