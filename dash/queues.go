package dash

import (
	"cmp"
	"html/template"
	"slices"
	"strings"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/ops"
)

// queueRow is a queue in a table.
type queueRow struct {
	ops.Queue
	Handlers ops.QueueHandlers
	// Waiting and Dead are estimated numbers of tasks, of all kinds.
	Waiting, Dead int64
	Late          bool // whether the first task is due already
	Pause         *ops.Pause
	Limits        []string
	Kinds         []kindRow
	Spark         template.HTML
}

// kindRow is a kind in a queue.
type kindRow struct {
	Name          string
	Waiting, Dead int64
	Handled       bool
	Limits        []string
	Pause         *ops.Pause
}

// queueRows puts together what is known of queues.
func queueRows(p ops.Pulse, counts []ops.Count) (rows []queueRow) {
	for _, q := range p.Queues {
		row := queueRow{Queue: q, Handlers: ops.Handlers(p.Workers, q.Name, ""), Late: !q.FirstDue.IsZero() && q.FirstDue.Before(q.Now)}
		kinds := map[string]*kindRow{}
		kind := func(name string) *kindRow {
			if kinds[name] == nil {
				kinds[name] = &kindRow{Name: name, Pause: pauseOf(p.Pauses, falldue.Subject{Kind: name})}
			}
			return kinds[name]
		}
		for _, name := range slices.Concat(q.Kinds, q.Blocked) {
			kind(name)
		}
		for _, c := range counts {
			if c.Queue != q.Name {
				continue
			}
			switch c.State {
			case falldue.StateOpen, falldue.StateSnoozed, falldue.StateBlocked:
				row.Waiting += c.Tasks
				kind(c.Kind).Waiting += c.Tasks
			case falldue.StateDead:
				row.Dead += c.Tasks
				kind(c.Kind).Dead += c.Tasks
			}
		}
		for _, w := range p.Workers {
			if on, works := w.Queue(q.Name); works {
				row.Limits = append(row.Limits, on.Limits...)
			}
			for name, k := range kinds {
				if w.Handles(q.Name, name) && !w.Stopping {
					k.Handled = true
					k.Limits = append(k.Limits, w.Kinds[name].Limits...)
				}
			}
		}
		row.Limits = unique(row.Limits)
		for _, name := range sorted(kinds) {
			kinds[name].Limits = unique(kinds[name].Limits)
			row.Kinds = append(row.Kinds, *kinds[name])
		}
		row.Pause = pauseOf(p.Pauses, falldue.Subject{Queue: q.Name})
		rows = append(rows, row)
	}
	slices.SortStableFunc(rows, func(a, b queueRow) int { return cmp.Compare(a.Name, b.Name) })
	return rows
}

func unique(list []string) []string {
	slices.Sort(list)
	return slices.Compact(list)
}

// pauseOf returns the pause of a subject, or nil.
func pauseOf(list []ops.Pause, s falldue.Subject) *ops.Pause {
	for i := range list {
		if list[i].Subject == s {
			return &list[i]
		}
	}
	return nil
}

// queuesView is what the page of queues shows.
type queuesView struct {
	ops.Pulse
	Rows    []queueRow
	Now     time.Time
	Age     time.Duration
	Counted time.Duration // how old the numbers of tasks are
	Trouble *trouble
}

func queuesPage(in *request) (page, error) {
	ctx := in.r.Context()
	var p reading[ops.Pulse]
	var counts reading[[]ops.Count]
	var minutes reading[[]ops.Span]
	together(func() { p = in.h.reads.pulse.get(ctx) }, func() { counts = in.h.reads.counts.get(ctx) }, func() { minutes = in.h.reads.minutes.get(ctx) })
	v := queuesView{Pulse: p.Value, Rows: queueRows(p.Value, counts.Value), Now: p.Value.At, Age: p.Age, Counted: counts.Age, Trouble: troubleOf(cmp.Or(p.Err, counts.Err))}
	for i := range v.Rows {
		v.Rows[i].Spark = spark(minutes.Value, v.Rows[i].Name, in.h.now(p))
	}
	return page{Title: "Queues", Nav: "queues", Live: true, Regions: []region{{ID: "queues", Template: "queues", Data: v}}}, nil
}

// KindNames are the names of the kinds in a line.
func (r queueRow) KindNames() string {
	names := make([]string, 0, len(r.Kinds))
	for _, k := range r.Kinds {
		names = append(names, k.Name)
	}
	return strings.Join(names, " ")
}
