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
	// Workers are the live workers. Workers that do not apply the change come first.
	Workers []uptakeWorker
	// Ramp has the steps of the change. It is nil if the change has only one.
	Ramp *stepsView
	// Applied is the number of workers that apply the change, and Refused the number that cannot.
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

// uptakeOf returns which workers apply the newest change of a subject's policies, or nil if that change has ended.
func uptakeOf(history []ops.Override, s falldue.Subject, p ops.Pulse) *uptake {
	for _, o := range slices.Backward(history) {
		if o.Subject != s {
			continue
		}
		if !o.Until.IsZero() && !o.Until.After(p.At) || o.Cleared && p.At.Sub(o.At) > clearedFor {
			return nil
		}
		u := appliedBy(o, p.Workers)
		u.Ramp = stepsOf(o, p.At)
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

// rank orders workers: first those that cannot apply a change, then those that have not applied it yet, then the
// others.
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

// stepsView has the steps of an override, as a page shows them.
type stepsView struct {
	// Number is the step in effect, of so many.
	Number, Of int
	Now        stepView
	// Next are the steps after it, and Last is the last one if More steps are between.
	Next []stepView
	More int
	Last *stepView
	End  time.Time // of the override, or zero
}

// stepView is a step, and the time since the start of the step before it.
type stepView struct {
	Formula string
	At      time.Time
	Gap     time.Duration
}

// shownSteps is how many steps to come a page shows.
const shownSteps = 4

// stepsOf returns the steps of an override, or nil if it has only one.
func stepsOf(o ops.Override, now time.Time) *stepsView {
	if len(o.Steps) < 2 {
		return nil
	}
	s := &stepsView{Of: len(o.Steps), End: o.Until}
	for i, step := range o.Steps {
		one := stepView{Formula: ops.OverrideName(step.Formula), At: o.At.Add(step.After)}
		if i > 0 {
			one.Gap = step.After - o.Steps[i-1].After
		}
		switch {
		case i == 0 || !one.At.After(now):
			s.Number, s.Now = i+1, one
		case len(s.Next) < shownSteps:
			s.Next = append(s.Next, one)
		case i == len(o.Steps)-1:
			s.Last = &one
		default:
			s.More++
		}
	}
	return s
}
