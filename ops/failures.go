package ops

import (
	"cmp"
	"context"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/store"
)

// Failures is what has failed, see [Ops.Failures].
type Failures struct {
	// Groups are the failures by kind and error, the greatest group first.
	Groups []FailureGroup
	// Tasks is the number of tasks in Groups, and More reports whether there are others that were
	// not read.
	Tasks int
	More  bool
	// At is the time of the database's clock, or zero if nothing was read.
	At time.Time
}

// FailureGroup is the tasks of a kind in a queue whose last errors are alike.
type FailureGroup struct {
	Queue, Kind string
	// Error is the beginning of what the errors have in common: parts that differ from task to
	// task, such as numbers and quoted texts, are "…".
	Error string
	// Waiting is how many of the tasks will be retried, and Dead how many are dead.
	Waiting, Dead int
	// First is when the group's failures began, as far as is known: when its tasks failed last, the
	// earliest of these times or, in the 20 greatest groups, when the task with the most attempts
	// first failed. Last is when one failed last. A time includes the jitter that was drawn then, up
	// to the present.
	First, Last time.Time
	// Newest is the id of the task that failed at Last.
	Newest int64

	tried    int64 // the id of the task with the most attempts
	attempts int
}

const (
	// mostFailures is the number of tasks that Failures reads, and failureLanes from how many
	// lanes.
	mostFailures = 10_000
	failureLanes = 200
	// datedGroups is how many groups have the time of a first failure.
	datedGroups = 20
)

// Failures groups the tasks that have failed, and are dead or wait for a retry, by their last
// errors. It reads the newest of each lane: 10,000 tasks of 200 lanes at most, with a statement for
// each lane. Tasks that run are left out.
func (o *Ops) Failures(ctx context.Context) (f Failures, err error) {
	type lane struct {
		queue string
		store.Head
	}
	var lanes []lane
	queues, err := o.store.Queues(ctx)
	if err != nil {
		return f, err
	}
	for _, queue := range queues {
		heads, err := o.store.NewLaneFinder(queue).Find(ctx)
		if err != nil {
			return f, err
		}
		dead, err := o.store.FinishedLanes(ctx, queue, string(falldue.StateDead))
		if err != nil {
			return f, err
		}
		for _, h := range append(heads, dead...) {
			if h.Corrupt == nil && h.Attempts > 0 {
				lanes = append(lanes, lane{queue, h})
			}
		}
	}
	f.More = len(lanes) > failureLanes
	lanes = lanes[:min(len(lanes), failureLanes)]
	groups := map[failureKey]*FailureGroup{}
	for i, l := range lanes {
		most := (mostFailures - f.Tasks) / (len(lanes) - i)
		tasks, err := o.store.NewestInLane(ctx, l.queue, l.Lane, most)
		if err != nil {
			return f, err
		}
		f.More = f.More || len(tasks) == most
		for _, t := range tasks {
			f.At = store.Time(t.Now)
			if t.LastError == "" || t.ClaimedBy != "" && t.Updated > t.Now {
				continue
			}
			f.Tasks++
			key := failureKey{t.Queue, t.Kind, errorText(t.LastError)}
			if groups[key] == nil {
				groups[key] = &FailureGroup{Queue: t.Queue, Kind: t.Kind, Error: key.text}
			}
			groups[key].add(t)
		}
	}
	for _, g := range groups {
		f.Groups = append(f.Groups, *g)
	}
	slices.SortFunc(f.Groups, func(a, b FailureGroup) int {
		return cmp.Or(cmp.Compare(b.Waiting+b.Dead, a.Waiting+a.Dead), cmp.Compare(a.Queue, b.Queue), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Error, b.Error))
	})
	for i := range f.Groups[:min(len(f.Groups), datedGroups)] {
		g := &f.Groups[i]
		attempts, err := o.store.Attempts(ctx, g.tried)
		if err != nil {
			return f, err
		}
		for _, a := range attempts {
			if at := store.Time(a.Finished); at.Before(g.First) && errorText(a.Error) == g.Error {
				g.First = at
			}
		}
	}
	return f, nil
}

type failureKey struct{ queue, kind, text string }

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
	if at.After(g.Last) || g.Newest == 0 {
		g.Last, g.Newest = at, t.ID
	}
}

// varying matches the parts of errors that differ from task to task: quoted texts, UUIDs,
// hexadecimal and decimal numbers.
var varying = regexp.MustCompile(`"[^"]*"|'[^']*'|` + "`[^`]*`" + `|\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b|\b0x[0-9a-fA-F]+\b|\b[0-9a-fA-F]*[0-9][0-9a-fA-F]{7,}\b|[0-9]+`)

// A status of HTTP or SMTP with which a server refuses a request says what is wrong. It has a word or
// a colon before it, or a reason after it.
var (
	httpError    = regexp.MustCompile(`^[45][0-9]{2}$`)
	statusBefore = regexp.MustCompile(`(?i)(?::|status|code|http|answered|returned)[ :=]*$`)
	reasonAfter  = regexp.MustCompile(`^ [A-Z][a-z]`)
)

// maxErrorText is the greatest number of characters of the error of a group.
const maxErrorText = 200

// errorText returns what an error has in common with others of its kind.
func errorText(text string) string {
	first, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	first = strings.ToValidUTF8(first, "…")
	var b strings.Builder
	end := 0
	for _, at := range varying.FindAllStringIndex(first, -1) {
		b.WriteString(first[end:at[0]])
		if part := first[at[0]:at[1]]; httpError.MatchString(part) && (statusBefore.MatchString(first[:at[0]]) || reasonAfter.MatchString(first[at[1]:])) {
			b.WriteString(part)
		} else {
			b.WriteString("…")
		}
		end = at[1]
	}
	b.WriteString(first[end:])
	runes := []rune(b.String())
	if len(runes) > maxErrorText {
		runes = append(runes[:maxErrorText], '…')
	}
	return string(runes)
}
