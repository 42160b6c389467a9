package dash

import (
	"fmt"
	"html/template"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/flow"
	"github.com/falldue/falldue/internal/chart"
	"github.com/falldue/falldue/internal/words"
)

const (
	// drawnNodes is the greatest number of boxes in a picture of a flow. At least joinedFrom tasks of one kind, with
	// the same tasks before and after them, share one box.
	drawnNodes, joinedFrom = 60, 4
)

// flowView is what the page of a flow shows.
type flowView struct {
	flow.Graph
	ID      int64
	Drawing template.HTML
	Boxes   int
	Rows    []flowRow
	Age     time.Duration
	Trouble *trouble
}

// flowRow is a task of a flow with the tasks next to it.
type flowRow struct {
	flow.Task
	Before, After []int64
}

func flowPage(in *request) (page, error) {
	text := in.query.Get("id")
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return page{}, mistake("The ID " + strconv.Quote(text) + " is not a number.")
	}
	r := in.h.reads.flow.get(in.r.Context(), strconv.FormatInt(id, 10))
	if !r.Known {
		return page{}, r.Err
	}
	v := flowView{Graph: r.Value, ID: id, Age: r.Age, Trouble: troubleOf(r.Err)}
	v.draw()
	return page{Title: "Flow of task " + text, Nav: "tasks", Live: true, Regions: []region{{ID: "flow", Template: "flow", Data: v}}}, nil
}

// draw draws the flow. Tasks that are alike have one box.
func (v *flowView) draw() {
	before, after := map[int64][]int64{}, map[int64][]int64{}
	for _, e := range v.Edges {
		before[e.After], after[e.Before] = append(before[e.After], e.Before), append(after[e.Before], e.After)
	}
	groups := map[string][]flow.Task{}
	for _, t := range v.Tasks {
		v.Rows = append(v.Rows, flowRow{t, before[t.ID], after[t.ID]})
		key := fmt.Sprintf("%q %v %v", t.Kind, before[t.ID], after[t.ID])
		groups[key] = append(groups[key], t)
	}
	var boxes [][]flow.Task
	for _, key := range slices.Sorted(maps.Keys(groups)) {
		if len(groups[key]) >= joinedFrom {
			boxes = append(boxes, groups[key])
			continue
		}
		for _, t := range groups[key] {
			boxes = append(boxes, []flow.Task{t})
		}
	}
	slices.SortFunc(boxes, func(a, b []flow.Task) int { return int(a[0].ID - b[0].ID) })
	if v.Boxes = len(boxes); v.Boxes > drawnNodes {
		return
	}
	of := map[int64]int{} // the boxes of tasks
	for i, list := range boxes {
		for _, t := range list {
			of[t.ID] = i
		}
	}
	var nodes []chart.Node
	for _, list := range boxes {
		n := v.node(list)
		for _, id := range before[list[0].ID] {
			if !slices.Contains(n.After, of[id]) {
				n.After = append(n.After, of[id])
			}
		}
		nodes = append(nodes, n)
	}
	d := chart.Graph(v.Words(), nodes)
	drawing := strings.Replace(d.SVG(chart.Page), "<svg ", fmt.Sprintf(`<svg width="%.0f" `, d.Width), 1)
	v.Drawing = template.HTML(drawing) //nolint:gosec // package chart escapes texts
}

// node describes tasks that are alike.
func (v *flowView) node(list []flow.Task) chart.Node {
	n := chart.Node{Title: list[0].Kind, Color: flowColors[list[0].State]}
	if n.Title == "" {
		n.Title = "deleted"
	}
	n.Heavy = slices.ContainsFunc(list, func(t flow.Task) bool { return t.ID == v.ID })
	if len(list) == 1 {
		n.Text = fmt.Sprintf("task %d: %s", list[0].ID, flowWord(list[0].State))
		return n
	}
	n.Title += " × " + words.Number(int64(len(list)))
	n.Text = stateCounts(list)
	for _, t := range list {
		if t.State == falldue.StateDead {
			n.Color = flowColors[t.State]
		}
	}
	return n
}

// stateCounts returns the number of tasks in each state, in words.
func stateCounts(list []flow.Task) string {
	counts := map[falldue.State]int{}
	for _, t := range list {
		counts[t.State]++
	}
	var parts []string
	for _, s := range []falldue.State{falldue.StateDead, falldue.StateCancelled, flow.Deleted, falldue.StateOpen, falldue.StateSnoozed, falldue.StateBlocked, falldue.StateDone} {
		if counts[s] > 0 {
			parts = append(parts, words.Number(int64(counts[s]))+" "+flowWord(s))
		}
	}
	return strings.Join(parts, ", ")
}

// Words describes the tasks of the flow.
func (v flowView) Words() string {
	text := words.Count(int64(len(v.Tasks)), "task")
	if v.More {
		text = "The nearest " + text
	}
	return text + ": " + stateCounts(v.Tasks)
}

// flowColors are the colors of tasks in a picture by their states.
var flowColors = map[falldue.State]chart.Color{
	falldue.StateDone: chart.Series5, falldue.StateDead: chart.Series3, falldue.StateOpen: chart.Series1, falldue.StateSnoozed: chart.Series1,
}

func flowWord(s falldue.State) string { return phaseWord(falldue.Phase(s)) }
