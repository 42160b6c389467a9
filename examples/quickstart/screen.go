package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/falldue/falldue"
)

// screen is the view for terminals: a table that is redrawn in place.
type screen struct {
	out     io.Writer
	hour    time.Duration
	rules   []rule
	started time.Time // by the database's clock
	height  int       // number of lines of the last table
}

// Escape sequences of terminals.
const (
	wrapOff   = "\x1b[?7l" // clip long lines instead of wrapping them
	wrapOn    = "\x1b[?7h"
	clearLine = "\x1b[K"
	bold      = "\x1b[1m"
	faint     = "\x1b[2m"
	red       = "\x1b[31m"
	green     = "\x1b[32m"
	yellow    = "\x1b[33m"
	plain     = "\x1b[0m"
)

// isTerminal reports whether out is a terminal on which lines can be redrawn.
func isTerminal(out io.Writer) bool {
	f, ok := out.(*os.File)
	if !ok || os.Getenv("TERM") == "dumb" {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

func newScreen(out io.Writer, hour time.Duration, rules []rule) *screen {
	return &screen{out: out, hour: hour, rules: rules}
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
	add("%sThe shop after %4.1f hours%s. An hour lasts %v. Ctrl-C stops it.", bold, rows[0].Now.Sub(s.started).Seconds()/s.hour.Seconds(), plain, s.hour)
	add("%s  %-32s %-6s %5s %9s %8s  %s%s", faint, "task", "", "tries", "due in", "was late", "last error", plain)
	for _, rule := range s.rules {
		add("%s%s%s  %v", bold, rule.kind, plain, rule.policy)
		for _, r := range rows {
			if r.Kind == rule.kind {
				add("%s", formatRow(r))
			}
		}
	}
	var b strings.Builder
	b.WriteString(wrapOff)
	if s.height > 0 {
		fmt.Fprintf(&b, "\x1b[%dA\r", s.height) // up to the first line
	}
	for _, line := range table {
		b.WriteString(line + clearLine + "\n")
	}
	b.WriteString(wrapOn)
	s.height = len(table)
	fmt.Fprint(s.out, b.String())
}

// formatRow returns the line of the table for a task.
func formatRow(r row) string {
	word, colour, next, late, failure := "waits", yellow, formatDuration(r.due.Sub(r.Now)), "", r.LastError
	switch {
	case r.running():
		word, colour, next = "runs", bold, ""
	case r.State == falldue.StateDone:
		word, colour, next, failure = "done", green, "", ""
	case r.ended():
		word, colour, next = string(r.State), red, ""
	}
	if r.late >= 0 {
		late = formatDuration(r.late)
	}
	return fmt.Sprintf("  %-32s %s%-6s%s %5d %9s %8s  %s%s%s", r.Payload, colour, word, plain, r.Attempts, next, late, faint, failure, plain)
}

// formatDuration returns a short text for a duration.
func formatDuration(d time.Duration) string {
	if d < time.Second {
		return fmt.Sprintf("%dms", max(d, 0).Milliseconds())
	}
	return fmt.Sprintf("%.2fs", d.Seconds())
}
