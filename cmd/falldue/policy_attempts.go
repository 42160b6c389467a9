package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/falldue/falldue/sqlgen"
)

// attemptRange is a range of numbers of attempts, including both ends.
type attemptRange struct{ from, to int64 }

// parseAttempts parses numbers and ranges such as 0-30,1000,2147483647.
func parseAttempts(text string) ([]attemptRange, error) {
	var ranges []attemptRange
	for part := range strings.SplitSeq(text, ",") {
		first, last, isRange := strings.Cut(part, "-")
		if !isRange {
			last = first
		}
		from, err := parseAttempt(first)
		if err != nil {
			return nil, err
		}
		to, err := parseAttempt(last)
		if err != nil {
			return nil, err
		}
		if from > to {
			return nil, fmt.Errorf("--attempts: the range %q is reversed", part)
		}
		ranges = append(ranges, attemptRange{from, to})
	}
	return ranges, nil
}

func parseAttempt(text string) (int64, error) {
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err != nil || n < 0 || n > sqlgen.MaxAttempts {
		return 0, fmt.Errorf("--attempts: %q is not a number from 0 to %d, or a range such as 0-30", text, sqlgen.MaxAttempts)
	}
	return n, nil
}
