package chart

import (
	"math"
	"strconv"
	"time"
)

// unit is a unit of time or of numbers.
type unit struct {
	name string
	size float64 // seconds, or ones
	from float64 // from where on people use it
}

var (
	timeUnits = []unit{
		{" yr", 365 * day, 365 * day}, {" d", day, 2 * day}, {" h", 3600, 3600}, {" min", 60, 60}, {" s", 1, 1}, {" ms", 1e-3, 1e-3}, {" µs", 1e-6, 0},
	}
	numberUnits = []unit{{"G", 1e9, 1e9}, {"M", 1e6, 1e6}, {"k", 1e3, 1e3}, {"", 1, 0}}
)

const day = 86400

// unitOf returns the unit that people use for a value.
func unitOf(units []unit, v float64) unit {
	for _, u := range units {
		if math.Abs(v) >= u.from {
			return u
		}
	}
	return units[len(units)-1]
}

// Duration formats a duration as people write it, with about two digits: 250 ms, 3 min, 1.5 h,
// 24 h, 25 d.
func Duration(d time.Duration) string { return about(timeUnits, d.Seconds()) }

// Number formats a number as people write it, with about two digits: 0.85, 12, 1.2k, 94k, 1.5M.
func Number(v float64) string {
	if math.Abs(v) < 1 {
		return strconv.FormatFloat(v, 'g', 2, 64)
	}
	return about(numberUnits, v)
}

func about(units []unit, v float64) string {
	if v == 0 {
		return "0"
	}
	u := unitOf(units, v)
	v /= u.size
	if math.Abs(v) < 9.95 {
		v = math.Round(v*10) / 10
	} else {
		v = math.Round(v)
	}
	return strconv.FormatFloat(v, 'f', -1, 64) + u.name
}

// exact formats the value of a tick in a unit. The digits of a round number are all of it.
func exact(u unit, v float64) string {
	if v == 0 {
		return "0"
	}
	return strconv.FormatFloat(v/u.size, 'g', 6, 64) + u.name
}
