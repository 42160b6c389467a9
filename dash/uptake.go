package dash

import (
	"cmp"
	"slices"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/ops"
)

// uptake is which workers apply the newest change of a subject's policies.
type uptake struct {
	Change ops.Override
	// Workers are the live workers, the ones that do not apply it first.
	Workers []uptakeWorker
	// Applied is how many of them apply it, and Refused how many cannot.
	Applied, Refused int
}

// uptakeWorker is a worker, and whether it applies a change.
type uptakeWorker struct {
	ops.Worker
	Applies bool
	Refuses string // why it cannot, or ""
}

const (
	// clearedFor is how long the page shows which workers apply the end of an override.
	clearedFor = 10 * time.Minute
	// shownUptake is how many workers a page shows.
	shownUptake = 50
)

// uptakeOf returns which workers apply the newest change of a subject's policies, or nil if that has ended.
func uptakeOf(history []ops.Override, s falldue.Subject, p ops.Pulse) *uptake {
	for _, o := range slices.Backward(history) {
		if o.Subject != s {
			continue
		}
		if !o.Until.IsZero() && !o.Until.After(p.At) || o.Cleared && p.At.Sub(o.At) > clearedFor {
			return nil
		}
		u := appliedBy(o, p.Workers)
		return &u
	}
	return nil
}

// appliedBy returns which workers apply an override.
func appliedBy(o ops.Override, workers []ops.Worker) uptake {
	u := uptake{Change: o}
	for _, w := range workers {
		one := uptakeWorker{Worker: w}
		for _, r := range w.Refused {
			if r.Subject == o.String() {
				one.Refuses = cmp.Or(one.Refuses, r.Error)
			}
		}
		if w.Unread != "" {
			one.Refuses = cmp.Or(one.Refuses, w.Unread)
		}
		if one.Refuses != "" {
			u.Refused++
		} else if one.Applies = o.AppliedBy(w); one.Applies {
			u.Applied++
		}
		u.Workers = append(u.Workers, one)
	}
	slices.SortStableFunc(u.Workers, func(a, b uptakeWorker) int { return cmp.Compare(a.rank(), b.rank()) })
	return u
}

// rank orders workers: the ones that cannot apply a change, those that have not yet, and the others.
func (w uptakeWorker) rank() int {
	switch {
	case w.Refuses != "":
		return 0
	case !w.Applies:
		return 1
	}
	return 2
}

// Shown are the workers that a page shows.
func (u uptake) Shown() []uptakeWorker { return u.Workers[:min(len(u.Workers), shownUptake)] }

// Whole reports whether all workers apply the change.
func (u uptake) Whole() bool { return u.Applied == len(u.Workers) }
