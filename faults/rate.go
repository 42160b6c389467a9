package faults

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/falldue/falldue"
)

const (
	ratedName = "rated"
	// One job in ratedEvery has a rate, in runs that have such jobs.
	ratedEvery = 23
	// mostInWindow rated jobs start in any ratedWindow, in all workers. Of one key one starts
	// each ratedSpacing on average, and up to ratedBurst at once.
	mostInWindow, ratedWindow = 5, 250 * time.Millisecond
	ratedBurst, ratedSpacing  = 2, 50 * time.Millisecond
)

func rates() []falldue.Limit {
	return []falldue.Limit{
		falldue.Rate(mostInWindow, ratedWindow),
		falldue.Rate(int(time.Second/ratedSpacing), time.Second).Burst(ratedBurst).PerKey(),
	}
}

// ratedKey returns the key of the rated job with a number: one of two.
func ratedKey(number int) string { return strconv.Itoa(number / ratedEvery % 2) }

// noted runs a job that falldue settles, and records when it was claimed, as the database has it.
func (w *worker) noted(ctx context.Context, t falldue.Task[Job]) error {
	w.noteClaim(ctx, t)
	return w.plain(ctx, t)
}

// noteClaim records when a run was claimed, as the database has it.
func (w *worker) noteClaim(ctx context.Context, t falldue.Task[Job]) {
	info, err := w.queue.Task(ctx, t.ID)
	if err == nil && info.Fence == t.Fence { // else a fault is under way, or another one runs
		w.write(Claimed, t, strconv.FormatInt(info.AttemptedAt.UnixMicro(), 10))
	}
}

// claimed returns when claims of a task were made by the database's clock, as far as anybody
// knows: those whose handlers noted it, and the last one.
func (l *life) claimed() map[int64]time.Time {
	known := maps.Clone(l.claims)
	if known == nil {
		known = map[int64]time.Time{}
	}
	for _, r := range l.rows {
		if r.Fence > 0 && !r.AttemptedAt.IsZero() {
			known[r.Fence] = r.AttemptedAt
		}
	}
	return known
}

// tooOften returns the tasks that started although the rates of their kind were used up.
func tooOften(lives map[string]*life) (list []finding) {
	type start struct {
		at   time.Time
		task string
	}
	var all []start
	byKey := map[string][]start{}
	for _, l := range lives {
		if len(l.rows) != 1 || l.rows[0].Rated == "" {
			continue
		}
		for _, at := range l.claimed() {
			s := start{at, l.key}
			all = append(all, s)
			byKey[l.rows[0].Rated] = append(byKey[l.rows[0].Rated], s)
		}
	}
	inOrder := func(a, b start) int { return a.at.Compare(b.at) }
	slices.SortFunc(all, inOrder)
	for i := mostInWindow; i < len(all); i++ {
		if within := all[i].at.Sub(all[i-mostInWindow].at); within < ratedWindow {
			list = append(list, finding{all[i].task, fmt.Sprintf("%d tasks started within %v, and %d may within %v", mostInWindow+1, within, mostInWindow, ratedWindow)})
		}
	}
	for key, starts := range byKey {
		slices.SortFunc(starts, inOrder)
		var used time.Time // up to when the average is used up
		for _, s := range starts {
			if used.Before(s.at) {
				used = s.at
			}
			used = used.Add(ratedSpacing)
			if ahead := used.Sub(s.at); ahead > ratedBurst*ratedSpacing {
				list = append(list, finding{s.task, fmt.Sprintf("the tasks of key %s that started are %v ahead of their rate, and %v may be", key, ahead, ratedBurst*ratedSpacing)})
			}
		}
	}
	return list
}
