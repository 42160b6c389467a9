package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// screen is where a command prints.
type screen struct {
	io.Writer
	width  int  // columns of the terminal, 0 if it is none
	colour bool // whether to use colours
}

// screenOf returns the screen of a command. Only a terminal has a width and colours.
func screenOf(cmd *cobra.Command) screen {
	s := screen{Writer: cmd.OutOrStdout()}
	file, ok := s.Writer.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return s
	}
	if width, _, err := term.GetSize(int(file.Fd())); err == nil {
		s.width = width
	}
	s.colour = os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	return s
}

// column is a column of a table.
type column struct {
	name string
	// right aligns numbers.
	right bool
	// least is the smallest width to which the column shrinks where the table is wider
	// than the terminal; 0 if it does not shrink.
	least int
	// prose is for sentences, whose beginnings matter most. Other cells lose their middles.
	prose bool
}

// gap is the number of spaces between columns.
const gap = 2

// table prints rows under columns. On a terminal it is no wider than that.
func (s screen) table(columns []column, rows [][]string) error {
	w := table.NewWriter()
	w.SetStyle(s.style())
	w.SuppressTrailingSpaces()
	head := make(table.Row, len(columns))
	configs := make([]table.ColumnConfig, len(columns))
	widths := s.widths(columns, rows)
	for i, c := range columns {
		head[i] = c.name
		configs[i] = table.ColumnConfig{Number: i + 1, WidthMax: widths[i], WidthMaxEnforcer: shortenName}
		if c.prose {
			configs[i].WidthMaxEnforcer = shorten
		}
		if c.right {
			configs[i].Align, configs[i].AlignHeader = text.AlignRight, text.AlignRight
		}
	}
	w.SetColumnConfigs(configs)
	w.AppendHeader(head)
	for _, r := range rows {
		cells := make(table.Row, len(columns))
		for i := range columns {
			cells[i] = plain(r[i])
		}
		w.AppendRow(cells)
	}
	_, err := io.WriteString(s, w.Render()+"\n")
	return err
}

// style has no borders, and titles that stand out where there are colours.
func (s screen) style() table.Style {
	style := table.StyleDefault
	style.Options = table.Options{}
	style.Box.PaddingLeft, style.Box.PaddingRight = "", strings.Repeat(" ", gap)
	style.Format.Header = text.FormatDefault
	if s.colour {
		style.Color.Header = text.Colors{text.Bold}
	}
	if s.width > 0 {
		style.Size.WidthMax = s.width
	}
	return style
}

// widths returns the width of each column: its widest cell, or less where the
// table would be wider than the terminal.
func (s screen) widths(columns []column, rows [][]string) []int {
	widths, total := make([]int, len(columns)), 0
	for i, c := range columns {
		widths[i] = text.StringWidthWithoutEscSequences(c.name)
		for _, r := range rows {
			widths[i] = max(widths[i], text.StringWidthWithoutEscSequences(plain(r[i])))
		}
		total += widths[i] + gap
	}
	for i := len(columns) - 1; i >= 0 && s.width > 0 && total > s.width; i-- {
		if least := columns[i].least; least > 0 && widths[i] > least {
			narrow := max(least, widths[i]-(total-s.width))
			total -= widths[i] - narrow
			widths[i] = narrow
		}
	}
	return widths
}

// shorten cuts a text that is too long.
func shorten(s string, most int) string {
	if text.StringWidthWithoutEscSequences(s) <= most {
		return s
	}
	return text.Trim(s, most-1) + "…"
}

// shortenName leaves out the middle of a name that is too long: keys often differ only in their ends.
func shortenName(s string, most int) string {
	if text.StringWidthWithoutEscSequences(s) <= most {
		return s
	}
	end, width := []rune(s), 0
	i := len(end)
	for ; i > 0; i-- {
		next := text.RuneWidth(end[i-1])
		if width+next > (most-1)/2 {
			break
		}
		width += next
	}
	return text.Trim(s, most-1-width) + "…" + string(end[i:])
}

// plain returns a text without line ends and other characters by which it could change
// the terminal.
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n', r == '\t':
			return ' '
		case unicode.IsControl(r), reorders(r):
			return '�'
		}
		return r
	}, s)
}

// reorders reports whether a character changes the direction of the text around it, so that people
// read another text than there is.
func reorders(r rune) bool { return unicode.Is(unicode.Bidi_Control, r) }

// jsonFlag adds the flag --json.
func jsonFlag(cmd *cobra.Command, value *bool, usage string) {
	cmd.Flags().BoolVar(value, "json", false, usage)
}

// jsonLines prints one JSON object a line.
func jsonLines(out io.Writer) *json.Encoder {
	lines := json.NewEncoder(visible{out})
	lines.SetEscapeHTML(false)
	return lines
}

// visible writes JSON with all control characters, and those that change the direction of text, as
// escapes. They occur only in strings.
type visible struct{ io.Writer }

func (v visible) Write(text []byte) (int, error) {
	escaped := make([]byte, 0, len(text))
	for _, r := range string(text) {
		if r != '\n' && unicode.IsControl(r) || reorders(r) {
			escaped = fmt.Appendf(escaped, "\\u%04x", r)
		} else {
			escaped = utf8.AppendRune(escaped, r)
		}
	}
	if _, err := v.Writer.Write(escaped); err != nil {
		return 0, err
	}
	return len(text), nil
}
