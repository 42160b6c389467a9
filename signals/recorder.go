package signals

import (
	"context"
	"maps"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/hooks"
	"github.com/falldue/falldue/internal/pattern"
	"github.com/falldue/falldue/internal/worker"
)

// Backend creates the series of metrics.
type Backend interface {
	// Series returns the series of a metric with values for its labels, in the order of
	// [Metric.Labels]. A Recorder calls it once for each series.
	Series(m *Metric, values ...string) Series
}

// Series takes measurements. Many goroutines call it concurrently.
type Series interface {
	// Record adds to a counter, sets a gauge, or adds an observation to a histogram. For runs and enqueues, ctx is the
	// context of the handler or the caller, so that exemplars can use its values.
	Record(ctx context.Context, v float64)
}

// Limits on the number of values of a label. All further values become "other".
const (
	// DefaultMaxKinds is the default of [RecorderConfig].MaxKinds.
	DefaultMaxKinds = 200
	maxQueues       = 100
	maxErrorTypes   = 50
	otherValue      = "other"
)

// RecorderConfig contains the settings of a [Recorder]. The zero value is ready for use.
type RecorderConfig struct {
	// MaxKinds is the maximum number of kinds with separate label values. Further kinds count as "other". Defaults to 200.
	MaxKinds int
}

// Recorder measures what this process does: its enqueues, its worker's statements and its runs. It
// is safe for concurrent use.
type Recorder struct {
	backend Backend

	mu     sync.RWMutex
	series map[seriesKey]Series
	values map[string]map[string]bool // by label
	most   map[string]int             // by label

	runs atomic.Pointer[map[runsKey]*runSeries] // a map that does not change
}

// seriesKey identifies a series. No metric of a Recorder has more labels.
type seriesKey struct {
	metric *Metric
	values [4]string
}

// runsKey says which runs a runSeries is about.
type runsKey struct{ queue, kind string }

// runSeries are the series that most runs of a kind in a queue record to. A run finds them in one lookup.
type runSeries struct {
	started, workerWait, limitWait, done, doneSeconds atomic.Pointer[Series]
}

// maxRunSeries bounds the cache of runSeries.
const maxRunSeries = 1000

// NewRecorder returns a recorder that passes its measurements to a backend.
func NewRecorder(b Backend, cfg RecorderConfig) *Recorder {
	if cfg.MaxKinds <= 0 {
		cfg.MaxKinds = DefaultMaxKinds
	}
	r := &Recorder{
		backend: b, series: map[seriesKey]Series{}, values: map[string]map[string]bool{},
		most: map[string]int{"kind": cfg.MaxKinds, "queue": maxQueues, "error_type": maxErrorTypes},
	}
	r.runs.Store(&map[runsKey]*runSeries{})
	return r
}

// record records a measurement. It allocates nothing for a series that is known.
func (r *Recorder) record(ctx context.Context, m *Metric, v float64, values ...string) {
	key := seriesKey{metric: m}
	copy(key.values[:], values)
	r.mu.RLock()
	s := r.series[key]
	r.mu.RUnlock()
	if s == nil {
		s = r.make(key)
	}
	s.Record(ctx, v)
}

// recordTo is record for a series with a place of its own.
func (r *Recorder) recordTo(ctx context.Context, place *atomic.Pointer[Series], m *Metric, v float64, values ...string) {
	s := place.Load()
	if s == nil {
		key := seriesKey{metric: m}
		copy(key.values[:], values)
		made := r.make(key)
		s = &made
		place.Store(s)
	}
	(*s).Record(ctx, v)
}

// runsOf returns the series of runs of a kind in a queue.
func (r *Recorder) runsOf(queue, kind string) *runSeries {
	key := runsKey{queue, kind}
	if s := (*r.runs.Load())[key]; s != nil {
		return s
	}
	s := new(runSeries)
	r.mu.Lock()
	defer r.mu.Unlock()
	known := *r.runs.Load()
	if known[key] != nil {
		return known[key]
	}
	if len(known) < maxRunSeries {
		more := maps.Clone(known)
		more[key] = s
		r.runs.Store(&more)
	}
	return s
}

// make makes a series, of values that are bounded.
func (r *Recorder) make(key seriesKey) Series {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s := r.series[key]; s != nil {
		return s
	}
	bounded := key
	for i, label := range key.metric.Labels {
		bounded.values[i] = r.bound(label, key.values[i])
	}
	s := r.series[bounded]
	if s == nil {
		values := bounded.values
		s = r.backend.Series(key.metric, values[:len(key.metric.Labels)]...)
		r.series[bounded] = s
	}
	return s
}

// bound returns a value of a label, or "other" if there are too many.
func (r *Recorder) bound(label, value string) string {
	most, bounded := r.most[label]
	known := r.values[label]
	if !bounded || value == "" || known[value] {
		return value
	}
	if len(known) >= most {
		return otherValue
	}
	if known == nil {
		known = map[string]bool{}
		r.values[label] = known
	}
	known[value] = true
	return value
}

// begun are outcomes that handled kinds have from the beginning.
var begun = []falldue.Outcome{falldue.OutcomeDone, falldue.OutcomeDead, falldue.OutcomeDiscarded, falldue.OutcomeLost}

// Begin sets the series of some events to 0, for the named queues and the kinds that q handles. The events are stuck
// handlers, lost claims, and runs that ended as done, dead, discarded or lost. Without the 0, the function increase of
// Prometheus misses the first event. Exporters call Begin before each export.
func (r *Recorder) Begin(q *falldue.Queue) {
	ctx, cfg := context.Background(), hooks.Of[interface{ WorkerConfig() worker.Config }](q).WorkerConfig()
	if len(cfg.Handlers) == 0 {
		return
	}
	for kind, h := range cfg.Handlers {
		for _, o := range begun {
			r.record(ctx, runsTotal, 0, h.Queue, kind, string(o))
		}
		r.record(ctx, overtimeTotal, 0, h.Queue, kind)
	}
	for queue := range cfg.Queues {
		if !pattern.Is(queue) {
			r.record(ctx, claimsRecovered, 0, queue)
		}
	}
	for _, operation := range []string{settle, extend} {
		r.record(ctx, claimsLost, 0, operation)
	}
}

// Operations that may find a claim lost.
const settle, extend = "settle", "extend"

// Hooks returns the hooks that measure a worker, for [falldue.Config].
func (r *Recorder) Hooks() falldue.Hooks {
	ctx := context.Background()
	statement := func(operation string, s falldue.StatementStats) {
		r.record(ctx, statementSeconds, s.Took.Seconds(), operation, s.Queue, classType(s.Err, s.Class))
		if s.Lost > 0 {
			r.record(ctx, claimsLost, float64(s.Lost), operation)
		}
	}
	return falldue.Hooks{
		Event: func(e falldue.Event) {
			switch e.Outcome {
			case falldue.OutcomeNone:
				r.recordTo(ctx, &r.runsOf(e.Queue, e.Kind).started, startedTotal, 1, e.Queue, e.Kind)
			case falldue.OutcomeDone:
				r.recordTo(ctx, &r.runsOf(e.Queue, e.Kind).done, runsTotal, 1, e.Queue, e.Kind, string(e.Outcome))
			default:
				r.record(ctx, runsTotal, 1, e.Queue, e.Kind, string(e.Outcome))
			}
		},
		Sweep: func(s falldue.StatementStats) {
			statement("sweep", s)
			if s.Err == nil {
				r.record(ctx, lanes, float64(s.Lanes), s.Queue)
			}
		},
		Claim: func(s falldue.StatementStats) {
			statement("claim", s)
			if s.Err == nil {
				r.record(ctx, claimTasks, float64(s.Tasks), s.Queue)
				r.record(ctx, claimsRecovered, float64(s.Recovered), s.Queue)
			}
		},
		Settle:   func(s falldue.StatementStats) { statement(settle, s) },
		Extend:   func(s falldue.StatementStats) { statement(extend, s) },
		Overtime: func(e falldue.Event) { r.record(ctx, overtimeTotal, 1, e.Queue, e.Kind) },
		Trouble: func(s falldue.StatementStats) {
			r.record(ctx, troublesTotal, 1, s.Role, classType(s.Err, s.Class))
		},
	}
}

// Run returns middleware that measures runs, for [falldue.Queue.Use].
func (r *Recorder) Run() falldue.Middleware {
	return func(next falldue.HandlerFunc) falldue.HandlerFunc {
		return func(ctx context.Context, run *falldue.Run) error {
			runs := r.runsOf(run.Queue, run.Kind)
			r.recordTo(ctx, &runs.workerWait, workerWait, max(run.StartedAt.Sub(run.ReadyAt), 0).Seconds(), run.Queue, run.Kind)
			if limits := run.ReadyAt.Sub(run.DueAt); limits > 0 {
				r.recordTo(ctx, &runs.limitWait, limitWait, limits.Seconds(), run.Queue, run.Kind)
			}
			start := time.Now()
			err := next(ctx, run)
			took, outcome := time.Since(start).Seconds(), run.Outcome(err)
			if outcome == falldue.OutcomeDone && err == nil {
				r.recordTo(ctx, &runs.doneSeconds, handlerSeconds, took, run.Queue, run.Kind, string(outcome), "")
			} else {
				r.record(ctx, handlerSeconds, took, run.Queue, run.Kind, string(outcome), ErrorType(errorOf(outcome, err)))
			}
			return err
		}
	}
}

// QueueOf returns the queue in which a task will wait.
func QueueOf(p *falldue.EnqueueParams) string {
	return hooks.Of[interface{ Queue() string }](p).Queue()
}

// Enqueue returns middleware that measures enqueues, for [falldue.Queue.UseEnqueue].
func (r *Recorder) Enqueue() falldue.EnqueueMiddleware {
	return func(next falldue.EnqueueFunc) falldue.EnqueueFunc {
		return func(ctx context.Context, tx falldue.Tx, tasks []falldue.EnqueueParams) ([]falldue.Receipt, error) {
			start := time.Now()
			receipts, err := next(ctx, tx, tasks)
			took, failed, queue := time.Since(start).Seconds(), ErrorType(err), ""
			var last enqueued
			n := 0 // tasks in a row that are like the last one
			count := func() {
				if n > 0 {
					r.record(ctx, enqueuedTotal, float64(n), last.queue, last.kind, strconv.FormatBool(last.existed), failed)
				}
			}
			for i := range tasks {
				e := enqueued{QueueOf(&tasks[i]), tasks[i].Kind(), i < len(receipts) && receipts[i].Existed}
				if i == 0 {
					queue = e.queue
				} else if queue != e.queue {
					queue = "" // tasks of several queues
				}
				if e != last {
					count()
					last, n = e, 0
				}
				n++
			}
			count()
			r.record(ctx, statementSeconds, took, "enqueue", queue, failed)
			return receipts, err
		}
	}
}

// enqueued is what the series of an enqueued task depends on.
type enqueued struct {
	queue, kind string
	existed     bool
}
