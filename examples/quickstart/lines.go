package main

import (
	"fmt"
	"io"
	"time"

	"github.com/falldue/falldue"
)

// lines is the view for logs: it prints a line for each event.
type lines struct {
	out     io.Writer
	started time.Time // by the database's clock
}

func newLines(out io.Writer, rules []rule) *lines {
	fmt.Fprintln(out, "After n failures, a task is due again this long after the last one:")
	for _, r := range rules {
		fmt.Fprintf(out, "  %-16s %v\n", r.kind, r.policy)
	}
	fmt.Fprintln(out)
	return &lines{out: out}
}

func (l *lines) show(rows []row) {
	for _, r := range rows {
		if l.started.IsZero() {
			l.started = r.Now
		}
		// The line for the end of an attempt includes its start.
		if r.changed && !r.running() {
			fmt.Fprintf(l.out, "%7.2fs  %-16s %-34s %s\n", r.Now.Sub(l.started).Seconds(), r.Kind, r.Payload, describe(r))
		}
	}
}

// describe returns the state of a task in words.
func describe(r row) string {
	if r.Attempts == 0 {
		return "enqueued"
	}
	text := fmt.Sprintf("attempt %d", r.Attempts)
	if r.late >= 0 {
		text += fmt.Sprintf(" (%s late)", formatDuration(r.late))
	}
	if !r.waiting() {
		text += ": " + string(r.State)
	} else {
		text += ": failed, due in " + formatDuration(r.due.Sub(r.Now)) + " by " + scheduledBy(r)
	}
	if r.LastError != "" && r.State != falldue.StateDone {
		text += ": " + r.LastError
	}
	return text
}

// scheduledBy says what decided when a waiting task is due.
func scheduledBy(r row) string {
	if r.State == falldue.StateSnoozed {
		return "Retry-After"
	}
	return fmt.Sprintf("delay(%d)", r.Attempts)
}
