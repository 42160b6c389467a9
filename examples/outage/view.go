package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/demo"
	"github.com/falldue/falldue/ops"
)

// redrawn is the least time between two drawings of the screen.
const redrawn = 100 * time.Millisecond

// view shows the events, the countdowns of a few deliveries and the chart on a terminal. Elsewhere it prints the events
// as they happen, and the chart at the end.
type view struct {
	out     io.Writer
	screen  *demo.Screen // nil without a terminal
	drawn   time.Time
	queue   *falldue.Queue
	world   *world
	samples []int64 // tasks
	events  []string
	marks   []int // the columns of the events with numbers
}

func newView(out io.Writer, queue *falldue.Queue, w *world) *view {
	v := &view{out: out, queue: queue, world: w}
	if demo.IsTerminal(out) {
		v.screen = &demo.Screen{Out: out}
	}
	return v
}

// say shows an event and its number. The chart marks the event with the same number.
func (v *view) say(format string, args ...any) {
	column := v.world.column()
	v.marks = append(v.marks, column)
	at := time.Duration(column) * v.world.width
	v.add(fmt.Sprintf("%5.1fs  %d  ", at.Seconds(), len(v.marks)) + fmt.Sprintf(format, args...))
}

// note adds to the last event.
func (v *view) note(format string, args ...any) {
	v.add("           " + fmt.Sprintf(format, args...))
}

func (v *view) add(line string) {
	v.events = append(v.events, line)
	if v.screen == nil {
		fmt.Fprintln(v.out, line)
	}
}

// show draws the screen, if there is one.
func (v *view) show(ctx context.Context, o *ops.Ops) error {
	if v.screen == nil || time.Since(v.drawn) < redrawn {
		return nil
	}
	v.drawn = time.Now()
	countdowns, err := v.countdowns(ctx, o)
	if err != nil {
		return err
	}
	// With all events these are 22 lines, which fit on any terminal.
	v.screen.Draw(slices.Concat(v.events, []string{""}, countdowns, v.chart()))
	return nil
}

// countdowns returns a line for each sample.
func (v *view) countdowns(ctx context.Context, o *ops.Ops) ([]string, error) {
	policies, err := o.Policies(ctx)
	if err != nil {
		return nil, err
	}
	var lines []string
	for _, id := range v.samples {
		t, err := v.queue.Task(ctx, id)
		if errors.Is(err, falldue.ErrNotFound) { // done tasks are deleted
			lines = append(lines, fmt.Sprintf("  delivery %4d  %sarrived%s", id, demo.Green, demo.Plain))
			continue
		}
		if err != nil {
			return nil, err
		}
		left := max(policies.Due(t).Sub(t.Now), 0)
		text := fmt.Sprintf("due in %4.1fs %s%s%s", left.Seconds(), demo.Yellow, strings.Repeat("━", int(left/(8*v.world.width))), demo.Plain)
		if t.ClaimedBy != "" {
			text = "runs"
		}
		lines = append(lines, fmt.Sprintf("  delivery %4d  failed %d times  %s", id, t.Attempts, text))
	}
	return lines, nil
}

// finish shows the end.
func (v *view) finish() {
	if v.screen != nil {
		v.screen.Draw(slices.Concat(v.events, []string{""}, v.chart()))
		return
	}
	fmt.Fprintln(v.out, "\n"+strings.Join(v.chart(), "\n"))
}

func (v *view) chart() []string { return chart(v.world.columns(), v.world.width, v.marks) }
