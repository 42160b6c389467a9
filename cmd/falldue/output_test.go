package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/jedib0t/go-pretty/v6/text"
)

// TestTablesFitTheTerminal: a table that is too wide loses the middles of names and the ends of sentences, from the last
// column that may shrink to the first.
func TestTablesFitTheTerminal(t *testing.T) {
	t.Parallel()
	columns := []column{{name: "id", right: true}, {name: "kind", least: 8}, {name: "error", least: 12, prose: true}}
	rows := [][]string{{"1", "invoice.send.reminder", "the bank is closed until 9 o'clock, ☃"}, {"1234", "a", "b"}}
	for width, want := range map[int]string{
		0: `  id  kind                   error
   1  invoice.send.reminder  the bank is closed until 9 o'clock, ☃
1234  a                      b
`,
		48: `  id  kind                   error
   1  invoice.send.reminder  the bank is clos…
1234  a                      b
`,
		30: `  id  kind      error
   1  invo…der  the bank is…
1234  a         b
`,
	} {
		var out bytes.Buffer
		if err := (screen{Writer: &out, width: width}).table(columns, rows); err != nil {
			t.Fatal(err)
		}
		if out.String() != want {
			t.Errorf("width %d:\n%swant\n%s", width, &out, want)
		}
		for line := range strings.Lines(out.String()) {
			if got := text.StringWidth(strings.TrimSuffix(line, "\n")); width > 0 && got > width {
				t.Errorf("width %d: a line has %d columns: %s", width, got, line)
			}
		}
	}
}

func TestColoursAreForTerminals(t *testing.T) {
	t.Parallel()
	for _, colour := range []bool{false, true} {
		var out bytes.Buffer
		if err := (screen{Writer: &out, colour: colour}).table([]column{{name: "id"}}, [][]string{{"1"}}); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(out.String(), "\x1b[1m") != colour {
			t.Errorf("with colours %v it printed %q", colour, &out)
		}
	}
	cmd := root()
	cmd.SetOut(&bytes.Buffer{})
	if s := screenOf(cmd); s.colour || s.width != 0 {
		t.Errorf("a buffer is taken for a terminal: %+v", s)
	}
}
