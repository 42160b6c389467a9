package main

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// height is the number of lines of the bars.
const height = 6

// chart draws a column for each number of requests. A column lasts for width. Two lines below have the numbers of the
// events, at the columns in marks, and the time.
func chart(numbers []int, width time.Duration, marks []int) []string {
	most := slices.Max(append(slices.Clone(numbers), 1))
	columns := len(numbers)
	for _, m := range marks {
		columns = max(columns, m+1)
	}
	lines := []string{"requests a second at the partner"}
	for level := height - 1; level >= 0; level-- {
		label := "     "
		switch level {
		case height - 1:
			label = fmt.Sprintf("%5d", time.Duration(most)*time.Second/width)
		case 0:
			label = "    0"
		}
		var bar strings.Builder
		for _, n := range numbers {
			eighths := (n*height*8 + most - 1) / most // of a line; any request shows
			bar.WriteRune([]rune(" ▁▂▃▄▅▆▇█")[min(max(eighths-level*8, 0), 8)])
		}
		lines = append(lines, strings.TrimRight(label+" ┤"+bar.String(), " "))
	}
	below, times := []byte(strings.Repeat(" ", columns+1)), ""
	for i, m := range marks {
		below[m] = byte('1' + i)
	}
	for column := 0; column < columns; column += 10 {
		times += fmt.Sprintf("%-10s", fmt.Sprint(time.Duration(column)*width))
	}
	return append(lines, "       "+strings.TrimRight(string(below), " "), "       "+strings.TrimRight(times, " "))
}
