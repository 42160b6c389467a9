package run

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

	"github.com/falldue/falldue/internal/retry"
	"github.com/falldue/falldue/internal/words"
)

const (
	// overtimeGrace is how long a handler may take to return after its timeout.
	overtimeGrace = 10 * time.Second
	// overtimeEvery is the shortest time between two lines of the log about a kind.
	overtimeEvery = time.Minute
	// overtimeNamed is how many of the tasks are named.
	overtimeNamed = 20
)

// Overtime is the role that reports handlers that have not returned although their timeout has expired.
// They take the places of others.
type Overtime struct {
	begins func(*Run, time.Duration)     // is called for each, with its timeout
	report func(kinds map[string]string) // takes what a worker announces of each kind
	events events
	woken  chan struct{}

	mu   sync.Mutex
	runs map[*Run]overtime
}

// overtime describes a run whose timeout has expired.
type overtime struct {
	timeout time.Duration
	since   time.Time
}

// NewOvertime returns a role that calls begins for each run whose time has been over for 10
// seconds, and report with all of them.
func NewOvertime(begins func(*Run, time.Duration), report func(kinds map[string]string), log *slog.Logger) *Overtime {
	return &Overtime{begins: begins, report: report, events: events{log}, woken: make(chan struct{}, 1), runs: map[*Run]overtime{}}
}

// Limit notes that the handler of a run may take a time. Call returned when it has returned.
func (r *Run) Limit(timeout time.Duration) (returned func()) {
	if r.Env == nil || r.Overtime == nil { // made by hand
		return func() {}
	}
	o, since := r.Overtime, time.Now().Add(timeout)
	timer := time.AfterFunc(timeout+overtimeGrace, func() { o.add(r, overtime{timeout, since}) })
	return func() {
		timer.Stop()
		o.remove(r)
	}
}

func (o *Overtime) add(r *Run, late overtime) {
	o.mu.Lock()
	o.runs[r] = late
	o.mu.Unlock()
	o.begins(r, late.timeout)
	retry.Signal(o.woken)
}

func (o *Overtime) remove(r *Run) {
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
		o.report(texts)
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
	for _, r := range slices.SortedFunc(maps.Keys(o.runs), func(a, b *Run) int {
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
