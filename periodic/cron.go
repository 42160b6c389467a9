package periodic

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// expression is a cron expression: each field has a bit for each number that it names.
type expression struct {
	minute, hour, dayOfMonth, month, dayOfWeek uint64
	// anyDay is set if the day of the month or the day of the week begins with a star, as
	// in "*/2". A day must match both then. Otherwise either is enough.
	anyDay bool
}

// field is one of the five fields of a cron expression.
type field struct {
	name     string
	min, max int
	names    []string // of the numbers from min
}

var fields = [...]field{
	{"minute", 0, 59, nil},
	{"hour", 0, 23, nil},
	{"day of the month", 1, 31, nil},
	{"month", 1, 12, []string{"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"}},
	{"day of the week", 0, 7, []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}},
}

var named = map[string]string{
	"@hourly": "0 * * * *", "@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@weekly": "0 0 * * 0",
	"@monthly": "0 0 1 * *", "@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *",
}

// parseCron reads an expression as Vixie cron and cronie do.
func parseCron(text string) (e expression, err error) {
	if five, ok := named[text]; ok {
		text = five
	}
	texts := strings.Fields(text)
	if len(texts) != len(fields) {
		return e, fmt.Errorf("has %d fields: must have 5, such as \"30 2 * * *\", or be @daily or \"@every 15m\"", len(texts))
	}
	for i, bits := range []*uint64{&e.minute, &e.hour, &e.dayOfMonth, &e.month, &e.dayOfWeek} {
		if *bits, err = fields[i].parse(texts[i]); err != nil {
			return e, err
		}
	}
	if has(e.dayOfWeek, 7) { // Sunday, as 0 is
		e.dayOfWeek |= 1
	}
	e.anyDay = strings.HasPrefix(texts[2], "*") || strings.HasPrefix(texts[4], "*")
	return e, nil
}

// parse returns the numbers that a field names: a list of numbers and ranges, which may have a
// step.
func (f field) parse(text string) (bits uint64, err error) {
	for part := range strings.SplitSeq(text, ",") {
		first, last, step := f.min, f.max, 1
		numbers, every, stepped := strings.Cut(part, "/")
		if low, high, isRange := strings.Cut(numbers, "-"); numbers != "*" {
			if first, err = f.number(low); err != nil {
				return 0, err
			}
			last = first
			if isRange {
				if last, err = f.number(high); err != nil {
					return 0, err
				}
			} else if stepped {
				return 0, fmt.Errorf("%s %.40q: only a range can have a step, such as %d-%d/%s", f.name, part, first, f.max, every)
			}
			if first > last {
				return 0, fmt.Errorf("%s %.40q: the range ends before it begins", f.name, part)
			}
		}
		if stepped {
			if step, err = decimal(every); err != nil || step == 0 {
				return 0, fmt.Errorf("%s %.40q: the step must be a number above 0", f.name, part)
			}
		}
		for n := first; n <= last; n += step {
			bits |= 1 << n
		}
	}
	return bits, nil
}

// number returns the number of a field that a text writes or names.
func (f field) number(text string) (int, error) {
	if i := slices.Index(f.names, strings.ToLower(text)); i >= 0 {
		return f.min + i, nil
	}
	n, err := decimal(text)
	if err != nil || n < f.min || n > f.max {
		return 0, fmt.Errorf("%s %.40q: must be between %d and %d", f.name, text, f.min, f.max)
	}
	return n, nil
}

// decimal reads a number without a sign, of up to four digits, so that sums of two do not
// overflow.
func decimal(text string) (int, error) {
	n, err := strconv.ParseUint(text, 10, 13)
	return int(n), err
}
