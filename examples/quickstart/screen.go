package main

import (
	"fmt"
	"io"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/demo"
)

// screen is the view for terminals: a table that is redrawn in place.
type screen struct {
	demo.Screen
	hour    time.Duration
	rules   []rule
	started time.Time // by the database's clock
}

func newScreen(out io.Writer, hour time.Duration, rules []rule) *screen {
	return &screen{Screen: demo.Screen{Out: out}, hour: hour, rules: rules}
}

func (s *screen) show(rows []row) {
	if len(rows) == 0 {
		return
	}
	if s.started.IsZero() {
		s.started = rows[0].Now
	}
	var table []string
	add := func(format string, args ...any) { table = append(table, fmt.Sprintf(format, args...)) }
	add("%sThe shop after %4.1f hours%s. An hour lasts %v. Ctrl-C stops it.", demo.Bold, rows[0].Now.Sub(s.started).Seconds()/s.hour.Seconds(), demo.Plain, s.hour)
	add("%s  %-32s %-6s %5s %9s %8s  %s%s", demo.Faint, "task", "", "tries", "due in", "was late", "last error", demo.Plain)
	for _, rule := range s.rules {
		add("%s%s%s  %v", demo.Bold, rule.kind, demo.Plain, rule.policy)
		for _, r := range rows {
			if r.Kind == rule.kind {
				add("%s", formatRow(r))
			}
		}
	}
	s.Draw(table)
}

// formatRow returns the line of the table for a task.
func formatRow(r row) string {
	word, colour, next, late, failure := "waits", demo.Yellow, formatDuration(r.due.Sub(r.Now)), "", r.LastError
	switch {
	case r.running():
		word, colour, next = "runs", demo.Bold, ""
	case r.State == falldue.StateDone:
		word, colour, next, failure = "done", demo.Green, "", ""
	case r.ended():
		word, colour, next = string(r.State), demo.Red, ""
	}
	if r.late >= 0 {
		late = formatDuration(r.late)
	}
	return fmt.Sprintf("  %-32s %s%-6s%s %5d %9s %8s  %s%s%s", r.Payload, colour, word, demo.Plain, r.Attempts, next, late, demo.Faint, failure, demo.Plain)
}

// formatDuration returns a short text for a duration.
func formatDuration(d time.Duration) string {
	if d < time.Second {
		return fmt.Sprintf("%dms", max(d, 0).Milliseconds())
	}
	return fmt.Sprintf("%.2fs", d.Seconds())
}
