package demo

import (
	"fmt"
	"io"
	"os"
	"strings"
)

// Escape sequences of terminals.
const (
	wrapOff   = "\x1b[?7l" // clip long lines instead of wrapping them
	wrapOn    = "\x1b[?7h"
	clearLine = "\x1b[K"
	clearRest = "\x1b[J" // of the screen

	Bold   = "\x1b[1m"
	Faint  = "\x1b[2m"
	Red    = "\x1b[31m"
	Green  = "\x1b[32m"
	Yellow = "\x1b[33m"
	Plain  = "\x1b[0m"
)

// IsTerminal reports whether out is a terminal on which lines can be redrawn.
func IsTerminal(out io.Writer) bool {
	f, ok := out.(*os.File)
	if !ok || os.Getenv("TERM") == "dumb" {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// Screen draws lines on a terminal, over the lines that it drew before.
type Screen struct {
	Out    io.Writer
	height int // number of lines of the last drawing
}

// Draw replaces the lines of the last call with lines.
func (s *Screen) Draw(lines []string) {
	var b strings.Builder
	b.WriteString(wrapOff)
	if s.height > 0 {
		fmt.Fprintf(&b, "\x1b[%dA\r", s.height) // up to the first line
	}
	for _, line := range lines {
		b.WriteString(line + clearLine + "\n")
	}
	b.WriteString(clearRest + wrapOn)
	s.height = len(lines)
	fmt.Fprint(s.Out, b.String())
}
