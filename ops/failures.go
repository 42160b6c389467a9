package ops

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/cause"
	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/internal/store"
	"github.com/falldue/falldue/internal/words"
)

// Failures are the failed tasks that [Ops.Failures] returns.
type Failures struct {
	// Groups are the failures by kind and error, the largest group first.
	Groups []FailureGroup
	// Tasks is the number of tasks in Groups, and More reports whether there are failed tasks that have not been read.
	Tasks int
	More  bool
	// At is when the tasks were read, by the database's clock, or zero if none were read.
	At time.Time
}

// Of returns only the failures of a kind.
func (f Failures) Of(kind string) Failures {
	of := Failures{More: f.More, At: f.At}
	for _, g := range f.Groups {
		if g.Kind == kind {
			of.Groups, of.Tasks = append(of.Groups, g), of.Tasks+g.Waiting+g.Dead
		}
	}
	return of
}

// Top returns the n largest groups, or all groups if there are fewer than n.
func (f Failures) Top(n int) []FailureGroup { return f.Groups[:min(len(f.Groups), n)] }

// String describes the group in words: its error, and how many tasks have it, with examples.
func (g FailureGroup) String() string {
	return fmt.Sprintf("%q (%s, such as %s)", g.Error, words.Count(int64(g.Waiting+g.Dead), "task"), words.Names(g.Examples))
}

// FailureGroup describes the tasks of a kind in a queue whose last errors are alike.
type FailureGroup struct {
	Queue, Kind string
	// Error is the beginning of the text that the errors have in common. Parts that differ from task
	// to task, such as numbers and quoted texts, are "…".
	Error string
	// Waiting is how many tasks of the group will be retried, and Dead is how many are dead.
	Waiting, Dead int
	// First is when the group's failures began, as far as is known. In the 20 largest groups, it is the first failure of
	// the task with the most attempts. In other groups, only the latest failure of each task counts, and First is the
	// earliest of these failures. Last is the latest failure. Both times can be later than the failure by its jitter, but
	// not later than now.
	First, Last time.Time
	// Earlier reports whether the failures may have begun before First: not all tasks were read, or not all attempts of
	// the tasks are recorded.
	Earlier bool
	// Newest is the ID of the task that failed at Last, and Examples are up to 3 IDs of the group,
	// with Newest first.
	Newest   int64
	Examples []int64

	tried    int64 // the ID of the task with the most attempts
	attempts int
}

const (
	// mostFailures is the number of tasks that Failures reads, and failureLanes the number of their lanes.
	mostFailures = 10_000
	failureLanes = 200
	// sureLanes is how many of them are read, however slow the database is. They are read together, then twice as many
	// in all, and so on.
	sureLanes = 10
	// datedGroups is how many groups have the time of a first failure.
	datedGroups = 20
	// oldestRead is the number of the oldest tasks that are read of a lane whose tasks are not all read.
	oldestRead = 10
	// mostExamples is how many IDs a group names.
	mostExamples = 3
)

// Failures groups the tasks that have failed, and are dead or wait for a retry, by their last errors. It reads the
// newest and the oldest failed tasks of up to 200 lanes, together at most 10,000 tasks. One or two statements cover ten
// lanes or more. Tasks that run are left out. [Monitor.Failures] costs less if there are very many lanes.
func (o *Ops) Failures(ctx context.Context) (Failures, error) {
	s := o.newSurvey()
	if err := s.all(ctx, snapshot{}); err != nil {
		return Failures{}, err
	}
	lanes, more := s.failed(failureLanes)
	return o.failures(ctx, lanes, more, unbounded.within)
}

// failures is Failures of some lanes, within about a time.
func (o *Ops) failures(ctx context.Context, lanes []failedLane, more bool, within time.Duration) (f Failures, err error) {
	begin, left := time.Now(), more
	f.More = more
	groups := map[failureKey]*FailureGroup{}
	for i := 0; i < len(lanes); {
		if i >= sureLanes && time.Since(begin) > within {
			f.More, left = true, true
			break
		}
		part := lanes[i:min(i+max(i, sureLanes), len(lanes))]
		most := (mostFailures - f.Tasks) / (len(lanes) - i)
		i += len(part)
		newest, oldest, err := o.endsOf(ctx, part, most)
		if err != nil {
			return f, err
		}
		for n := range part {
			f.add(groups, newest[n], oldest[n], len(newest[n]) == most)
		}
	}
	for _, g := range groups {
		g.Earlier = g.Earlier || left
		f.Groups = append(f.Groups, *g)
	}
	slices.SortFunc(f.Groups, func(a, b FailureGroup) int {
		return cmp.Or(cmp.Compare(b.Waiting+b.Dead, a.Waiting+a.Dead), cmp.Compare(a.Queue, b.Queue), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Error, b.Error))
	})
	dated := f.Groups[:min(len(f.Groups), datedGroups)]
	tried := make([]int64, len(dated))
	for i, g := range dated {
		tried[i] = g.tried
	}
	lists, err := o.store.AttemptsOf(ctx, tried)
	if err != nil {
		return f, err
	}
	for i := range dated {
		g := &dated[i]
		g.Earlier = g.Earlier || len(lists[i]) == 0 && g.attempts > 1
		for _, a := range lists[i] {
			if at := store.Time(a.Finished); at.Before(g.First) && cause.Of(a.Error) == g.Error {
				g.First = at
			}
		}
	}
	return f, nil
}

// endsOf returns the newest tasks of lanes, up to most, and the oldest tasks of those that have more.
func (o *Ops) endsOf(ctx context.Context, lanes []failedLane, most int) (newest, oldest [][]store.Watched, err error) {
	places := make([]statements.QueueLane, len(lanes))
	for i, l := range lanes {
		places[i] = statements.QueueLane{Queue: l.queue, Lane: l.Lane}
	}
	if newest, err = o.store.EndsOfLanes(ctx, places, true, most); err != nil {
		return nil, nil, err
	}
	var long []statements.QueueLane
	for i, tasks := range newest {
		if len(tasks) == most {
			long = append(long, places[i])
		}
	}
	found, err := o.store.EndsOfLanes(ctx, long, false, oldestRead)
	oldest = make([][]store.Watched, len(lanes))
	for i, tasks := range newest {
		if len(tasks) == most && err == nil {
			oldest[i], found = found[0], found[1:]
		}
	}
	return newest, oldest, err
}

// add adds the newest tasks of a lane and, if it may have others, the oldest.
func (f *Failures) add(groups map[failureKey]*FailureGroup, newest, oldest []store.Watched, others bool) {
	f.More = f.More || others
	began := map[failureKey]bool{} // failures whose first ones are read
	for _, t := range oldest {
		began[keyOfFailure(t)] = true
	}
	seen := map[int64]bool{}
	for _, t := range append(newest, oldest...) {
		f.At = store.Time(t.Now)
		if seen[t.ID] || t.LastError == "" || t.ClaimedBy != "" && t.Updated > t.Now {
			continue
		}
		seen[t.ID] = true
		f.Tasks++
		key := keyOfFailure(t)
		if groups[key] == nil {
			groups[key] = &FailureGroup{Queue: t.Queue, Kind: t.Kind, Error: key.text}
		}
		groups[key].add(t)
		groups[key].Earlier = groups[key].Earlier || others && !began[key]
	}
}

type failureKey struct{ queue, kind, text string }

func keyOfFailure(t store.Watched) failureKey {
	return failureKey{t.Queue, t.Kind, cause.Of(t.LastError)}
}

func (g *FailureGroup) add(t store.Watched) {
	if t.State == string(falldue.StateDead) {
		g.Dead++
	} else {
		g.Waiting++
	}
	if t.Attempts > g.attempts {
		g.tried, g.attempts = t.ID, t.Attempts
	}
	at := store.Time(min(t.Updated, t.Now))
	if g.First.IsZero() || at.Before(g.First) {
		g.First = at
	}
	switch newest := at.After(g.Last) || g.Newest == 0; {
	case newest:
		g.Last, g.Newest = at, t.ID
		g.Examples = append([]int64{t.ID}, g.Examples[:min(len(g.Examples), mostExamples-1)]...)
	case len(g.Examples) < mostExamples:
		g.Examples = append(g.Examples, t.ID)
	}
}
