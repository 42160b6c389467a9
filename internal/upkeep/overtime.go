package upkeep

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/falldue/falldue/internal/control"
	"github.com/falldue/falldue/internal/retry"
	"github.com/falldue/falldue/internal/run"
	"github.com/falldue/falldue/internal/words"
)

const (
	// overtimeGrace is how long a handler may take to return after its timeout has expired.
	overtimeGrace = 10 * time.Second
	// overtimeEvery is the shortest time between two lines of the log about a kind.
	overtimeEvery = time.Minute
	// overtimeNamed is how many of a kind's tasks a line names.
	overtimeNamed = 20
)

// Overtime is the role that reports handlers that have not returned although their timeout has expired.
// Such handlers take the places of others.
type Overtime struct {
	observer overtimeObserver
	health   *control.HealthReport
	events   events
	woken    chan struct{}

	mu   sync.Mutex
	runs map[*run.Run]overtime
}

// overtimeObserver is told of each run that is reported, and of its timeout.
type overtimeObserver interface {
	Overtime(r *run.Run, timeout time.Duration)
}

// overtime describes a run whose timeout has expired.
type overtime struct {
	timeout time.Duration
	since   time.Time
}

// NewOvertime returns a role that tells observer of each run whose timeout expired 10 seconds ago,
// and reports all of them in health.
func NewOvertime(observer overtimeObserver, health *control.HealthReport, log *slog.Logger) *Overtime {
	return &Overtime{observer: observer, health: health, events: events{log}, woken: make(chan struct{}, 1), runs: map[*run.Run]overtime{}}
}

// Limit notes that the handler of a run begins and has a timeout. Call returned once, when the handler has
// returned. That call waits until the observer no longer reads the run.
func (o *Overtime) Limit(r *run.Run, timeout time.Duration) (returned func()) {
	since := time.Now().Add(timeout)
	told := make(chan struct{})
	timer := time.AfterFunc(timeout+overtimeGrace, func() {
		defer close(told)
		o.add(r, overtime{timeout, since})
	})
	return func() {
		if !timer.Stop() {
			<-told
		}
		o.remove(r)
	}
}

func (o *Overtime) add(r *run.Run, late overtime) {
	o.mu.Lock()
	o.runs[r] = late
	o.mu.Unlock()
	o.observer.Overtime(r, late.timeout)
	retry.Signal(o.woken)
}

func (o *Overtime) remove(r *run.Run) {
	o.mu.Lock()
	_, was := o.runs[r]
	delete(o.runs, r)
	o.mu.Unlock()
	if was {
		retry.Signal(o.woken)
	}
}

// Work reports until ctx ends.
func (o *Overtime) Work(ctx context.Context) {
	logged := map[string]time.Time{}
	for ctx.Err() == nil {
		kinds := o.byKind()
		texts := make(map[string]string, len(kinds))
		for _, kind := range slices.Sorted(maps.Keys(kinds)) {
			late := kinds[kind]
			texts[kind] = fmt.Sprintf("%s over the timeout of %v, the first for %s: %s", words.Count(int64(late.count), "handler"), late.timeout,
				words.Span(time.Since(late.since).Truncate(time.Minute)+overtimeGrace), strings.Trim(fmt.Sprint(late.tasks), "[]"))
			if now := time.Now(); now.Sub(logged[kind]) >= overtimeEvery {
				logged[kind] = now
				o.events.overtime(kind, late)
			}
		}
		o.health.Overtime(texts)
		wait := time.Hour
		if len(kinds) > 0 {
			wait = overtimeEvery
		}
		retry.Await(ctx, o.woken, wait)
	}
}

// lateRuns are the runs of a kind whose timeout has expired.
type lateRuns struct {
	overtime // of the first
	count    int
	tasks    []int64 // the first, up to overtimeNamed
}

func (o *Overtime) byKind() map[string]lateRuns {
	o.mu.Lock()
	defer o.mu.Unlock()
	kinds := map[string]lateRuns{}
	for _, r := range slices.SortedFunc(maps.Keys(o.runs), func(a, b *run.Run) int {
		return cmp.Or(o.runs[a].since.Compare(o.runs[b].since), cmp.Compare(a.Claim.ID, b.Claim.ID))
	}) {
		kind := r.Claim.From.Kind
		late, ok := kinds[kind]
		if !ok {
			late.overtime = o.runs[r]
		}
		if late.count++; late.count <= overtimeNamed {
			late.tasks = append(late.tasks, r.Claim.ID)
		}
		kinds[kind] = late
	}
	return kinds
}
