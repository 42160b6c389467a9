package main

import (
	"fmt"
	"io"
	"time"

	"github.com/falldue/falldue"
)

// lines is the view for logs: a line for each thing that happened.
type lines struct {
	out     io.Writer
	started time.Time // by the database's clock
}

func newLines(out io.Writer, rules []rule) *lines {
	fmt.Fprintln(out, "A task that failed n times falls due this long after it failed:")
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
		// That a task began is told with how it went.
		if r.changed && !r.runs() {
			fmt.Fprintf(l.out, "%7.2fs  %-16s %-34s %s\n", r.Now.Sub(l.started).Seconds(), r.Kind, r.Payload, happened(r))
		}
	}
}

// happened says in words how a task stands.
func happened(r row) string {
	if r.Attempts == 0 {
		return "enqueued"
	}
	text := fmt.Sprintf("attempt %d", r.Attempts)
	if r.late >= 0 {
		text += fmt.Sprintf(" (%s late)", short(r.late))
	}
	if !r.waits() {
		text += ": " + string(r.State)
	} else {
		text += ": failed, due in " + short(r.due.Sub(r.Now)) + " by " + why(r)
	}
	if r.LastError != "" && r.State != falldue.Done {
		text += ": " + r.LastError
	}
	return text
}

// why says what a task that waits waits by.
func why(r row) string {
	if r.State == falldue.Snoozed {
		return "Retry-After"
	}
	return fmt.Sprintf("delay(%d)", r.Attempts)
}
