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

// ratios are the pairs of systems whose ratio has a column in tables where both ran.
var ratios = [][2]string{{tunedName, rawName}, {pgxName, tunedName}, {pooledName, tunedName}, {pgxPooledName, pgxName}, {meteredName, tunedName}}

// tableOf makes a table with a row for each measure and a column for each system. A
// cell has the median and, after several runs, the smallest and the largest value.
// The last columns are ratios of medians.
func tableOf(all results, systems []string) table.Writer {
	t := table.NewWriter()
	header := append(table.Row{"measure"}, cells(systems)...)
	pairs := slices.Clone(ratios)
	for _, s := range systems {
		if near, far := nearOf(s); far {
			pairs = append(pairs, [2]string{s, near})
		}
	}
	shown := slices.DeleteFunc(pairs, func(r [2]string) bool {
		return !slices.ContainsFunc(all, func(x result) bool { _, ok := all.ratio(x.Measure, r); return ok })
	})
	for _, r := range shown {
		header = append(header, r[0]+" / "+r[1])
	}
	t.AppendHeader(header)
	columns := []table.ColumnConfig{}
	for i := range header[1:] {
		columns = append(columns, table.ColumnConfig{Number: i + 2, Align: text.AlignRight, AlignHeader: text.AlignRight})
	}
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
		for _, pair := range shown {
			cell := ""
			if ratio, ok := all.ratio(r.Measure, pair); ok {
				cell = number(ratio)
			}
			row = append(row, cell)
		}
		t.AppendRow(row)
	}
	return t
}

func cells(texts []string) (row table.Row) {
	for _, s := range texts {
		row = append(row, s)
	}
	return row
}

// ratio returns the ratio of two systems in a measure, and false unless both have a figure
// of it.
func (r results) ratio(measure string, pair [2]string) (float64, bool) {
	above, ok := r.of(measure, pair[0])
	below, both := r.of(measure, pair[1])
	if !ok || !both || below.Median <= 0 {
		return 0, false
	}
	return above.Median / below.Median, true
}

// number formats a value with three significant digits and commas: 123,000.
func number(v float64) string {
	if v < 999.5 {
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
