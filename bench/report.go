package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// report prints the results.
func report(out io.Writer, all results) {
	for _, t := range tablesOf(all) {
		t.SetOutputMirror(out)
		t.SetStyle(table.StyleRounded)
		t.Style().Format.Header = text.FormatDefault
		t.Render()
	}
}

// tablesOf makes one table of the claims and one of all other measures.
func tablesOf(all results) (list []table.Writer) {
	isClaim := func(r result) bool { return strings.HasPrefix(r.Measure, "claim_ms") }
	claims := slices.DeleteFunc(slices.Clone(all), func(r result) bool { return !isClaim(r) })
	for _, part := range []results{slices.DeleteFunc(slices.Clone(all), isClaim), claims} {
		if len(part) > 0 {
			list = append(list, tableOf(part, part.systems()))
		}
	}
	return list
}

// tableOf makes a table with a row for each measure and a column for each system. A
// cell has the median and, after several runs, the smallest and the largest value.
// The last column is the ratio of falldue to raw.
func tableOf(all results, systems []string) table.Writer {
	t := table.NewWriter()
	header := table.Row{"measure"}
	columns := []table.ColumnConfig{}
	for i, s := range systems {
		header = append(header, s)
		columns = append(columns, table.ColumnConfig{Number: i + 2, Align: text.AlignRight, AlignHeader: text.AlignRight})
	}
	withRaw := slices.Contains(systems, "raw") && slices.Contains(systems, "falldue")
	if withRaw {
		header = append(header, "falldue / raw")
		columns = append(columns, table.ColumnConfig{Number: len(header), Align: text.AlignRight, AlignHeader: text.AlignRight})
	}
	t.AppendHeader(header)
	t.SetColumnConfigs(columns)
	seen := map[string]bool{}
	for _, r := range all {
		if seen[r.Measure] {
			continue
		}
		seen[r.Measure] = true
		row := table.Row{r.Measure}
		for _, s := range systems {
			cell := ""
			if x, ok := all.of(r.Measure, s); ok {
				cell = number(x.Median)
				if len(x.Runs) > 1 {
					cell += fmt.Sprintf(" (%s–%s)", number(x.Min), number(x.Max))
				}
			}
			row = append(row, cell)
		}
		if f, ok := all.of(r.Measure, "falldue"); ok && withRaw {
			if raw, ok := all.of(r.Measure, "raw"); ok && raw.Median > 0 {
				row = append(row, number(f.Median/raw.Median))
			}
		}
		t.AppendRow(row)
	}
	return t
}

// number formats a value with three significant digits and commas: 123,000.
func number(v float64) string {
	if v < 1000 {
		return fmt.Sprintf("%.3g", v)
	}
	scale := math.Pow(10, math.Floor(math.Log10(v))-2)
	digits := fmt.Sprintf("%.0f", math.Round(v/scale)*scale)
	var b strings.Builder
	for i, d := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(d)
	}
	return b.String()
}
