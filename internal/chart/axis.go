package chart

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// Unit is what the values of an axis are.
type Unit int

// Units of axes.
const (
	Count   Unit = iota // whole numbers
	Numbers             // any
	Seconds             // durations
	Clock               // moments, in seconds since 1970
)

// Axis is an axis of a [Plot].
type Axis struct {
	Label    string
	Unit     Unit
	From, To float64 // the range; the data's, if both are 0
	Log      bool    // powers have the same distance; needs values above 0
	// Zone is for the unit Clock. Defaults to UTC.
	Zone *time.Location
}

// tick is a place of an axis that has a label.
type tick struct {
	at    float64
	label string
}

// ticks returns the ticks between two values, as many as fit.
func (a Axis) ticks(from, to float64, fits func([]tick) bool) (list []tick) {
	if a.Log && a.Unit == Seconds {
		return durations(from, to, fits)
	}
	for _, ticks := range a.candidates(from, to) {
		if list = ticks; fits(list) {
			return list
		}
	}
	return list[:min(len(list), 1)]
}

// maxTicks is the greatest number of ticks that are tried.
const maxTicks = 25

// candidates returns lists of ticks, the longest first.
func (a Axis) candidates(from, to float64) (lists [][]tick) {
	if a.Log {
		return a.powers(from, to)
	}
	for _, step := range a.steps(to - from) {
		var list []tick
		u := a.unit(step, to)
		first := math.Ceil(from/step - 1e-9)
		for i := first; i*step <= to*(1+1e-12) && len(list) <= maxTicks; i++ {
			list = append(list, tick{i * step, a.label(i*step, step, u)})
		}
		if a.Unit == Clock {
			list = a.moments(from, to, step)
		}
		if n := len(list); n > 0 && n <= maxTicks {
			lists = append(lists, list)
		}
	}
	return append(lists, nil)
}

// steps returns distances of ticks that people count in, the shortest first.
func (a Axis) steps(span float64) (steps []float64) {
	if a.Unit == Seconds || a.Unit == Clock {
		steps = []float64{10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 2 * 3600, 3 * 3600, 6 * 3600, 12 * 3600, day, 2 * day, 5 * day, 7 * day, 14 * day, 30 * day, 100 * day, 200 * day}
		decimal(1e-6, 1, func(s float64) { steps = append(steps, s) })
		decimal(365*day, 1e9*day, func(s float64) { steps = append(steps, s) })
		slices.Sort(steps)
	} else {
		decimal(math.Pow(10, math.Floor(math.Log10(max(span, 1e-9)))-3), span, func(s float64) { steps = append(steps, s) })
	}
	least := span / maxTicks
	if a.Unit == Count {
		least = max(least, 1)
	}
	if a.Unit == Clock {
		least = max(least, 60)
	}
	return slices.DeleteFunc(steps, func(s float64) bool { return s < least*(1-1e-9) })
}

// decimal calls a function with 1, 2 and 5 times the powers of ten from one number on.
func decimal(from, to float64, do func(float64)) {
	for power := from; power <= to; power *= 10 {
		for _, digit := range []float64{1, 2, 5} {
			do(digit * power)
		}
	}
}

// unit returns the unit of all labels up to a value whose distance is step. Days begin with
// steps of a day: 0, 6 h, 12 h, 18 h, 24 h.
func (a Axis) unit(step, to float64) unit {
	switch {
	case step < 1 && to >= 1: // 0.5 s
		step = 1
	case step == 1800 && to >= 2*3600: // 0.5 h
		step = 3600
	}
	for _, u := range timeUnits {
		if step >= u.size {
			return u
		}
	}
	return unit{}
}

func (a Axis) label(v, step float64, u unit) string {
	if v = math.Round(v/step) * step; math.Abs(v) < step/2 {
		return "0"
	}
	if a.Unit == Seconds {
		return exact(u, v)
	}
	return exact(unitOf(numberUnits, v), v)
}

// moments returns the ticks of an axis of moments. Days begin at midnight in the zone.
func (a Axis) moments(from, to, step float64) (list []tick) {
	zone := a.Zone
	if zone == nil {
		zone = time.UTC
	}
	form := "15:04"
	if step >= day {
		form = "2 Jan"
	}
	t := time.Unix(int64(from), 0).In(zone)
	t = time.Date(t.Year(), t.Month(), t.Day(), 0, 0, 0, 0, zone)
	for days := max(1, int(step/day)); len(list) <= maxTicks; {
		if s := float64(t.Unix()); s > to {
			break
		} else if s >= from {
			list = append(list, tick{s, t.Format(form)})
		}
		if step >= day {
			t = t.AddDate(0, 0, days)
		} else {
			t = t.Add(time.Duration(step) * time.Second)
		}
	}
	return list
}

// powers returns the ticks of a logarithmic axis of numbers: first all round values, then fewer.
func (a Axis) powers(from, to float64) (lists [][]tick) {
	low, high := int(math.Floor(math.Log10(from))), int(math.Ceil(math.Log10(to)))
	among := func(values []float64) {
		var list []tick
		for _, v := range values {
			if v >= from*(1-1e-9) && v <= to*(1+1e-9) {
				list = append(list, tick{v, exact(unitOf(numberUnits, v), v)})
			}
		}
		if len(list) > 1 {
			lists = append(lists, list)
		}
	}
	if high-low <= 3 {
		var values []float64
		decimal(math.Pow10(low), to, func(v float64) { values = append(values, v) })
		among(values)
	}
	for every := 1; every <= max(high-low, 1); every++ {
		var values []float64
		for p := low; p <= high; p += every {
			values = append(values, math.Pow10(p))
		}
		among(values)
	}
	return append(lists, nil)
}

// durations returns the ticks of a logarithmic axis of durations: of those that people know
// best as many as fit, then of the others.
func durations(from, to float64, fits func([]tick) bool) (list []tick) {
	for _, v := range []float64{1, 60, 3600, day, 30 * day, 365 * day, 36500 * day, 1e-3, 10, 600, 7 * day, 3650 * day, 0.1, 0.01, 1e-6, 1e-5, 1e-4, 6 * 3600} {
		if v < from*(1-1e-9) || v > to*(1+1e-9) {
			continue
		}
		at, _ := slices.BinarySearchFunc(list, v, func(t tick, v float64) int { return cmp.Compare(t.at, v) })
		if more := slices.Insert(slices.Clone(list), at, tick{v, exact(unitOf(timeUnits, v), v)}); fits(more) {
			list = more
		}
	}
	return list
}

// scale turns values into places.
type scale struct {
	from, to   float64 // values
	begin, end float64 // their places
	log        bool
}

// at returns the place of a value. What is out of range is at the edge.
func (s scale) at(v float64) float64 {
	from, to := s.from, s.to
	if v = min(max(v, from), to); s.log {
		v, from, to = math.Log(v), math.Log(from), math.Log(to)
	}
	if to == from {
		return s.begin
	}
	return s.begin + (v-from)/(to-from)*(s.end-s.begin)
}
