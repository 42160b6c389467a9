package faults

import (
	"slices"
	"testing"
	"time"
)

// row1 is the only row of a task in a history written by hand.
func row1(kind, state string, fence int64, change func(*Row)) []Row {
	r := Row{ID: 1, Key: "e-1", Kind: kind, State: state, Attempts: int(fence), Fence: fence}
	if state == "done" {
		r.Result = fence
	}
	if change != nil {
		change(&r)
	}
	return []Row{r}
}

func ranOnce(fence int64, outcome string, between ...Event) []Event {
	list := append([]Event{{What: Started}}, between...)
	list = append(list, Event{What: Ended, Outcome: outcome})
	for i := range list {
		e := &list[i]
		e.At, e.Process, e.Key, e.ID, e.Fence = fence*100+int64(i), "w", "e-1", 1, fence
		if e.What != Saw {
			e.Attempt = int(fence)
		}
	}
	return list
}

// event is an event of the task in a history written by hand.
func event(what string, fence int64, attempt int, outcome string) Event {
	return Event{At: fence * 100, Process: "w", What: what, Key: "e-1", ID: 1, Fence: fence, Attempt: attempt, Outcome: outcome}
}

func TestCheckerJudgesStepsAndChanges(t *testing.T) {
	t.Parallel()
	parts := func(fences ...int64) func(*Row) {
		return func(r *Row) {
			for i, fence := range fences {
				r.Parts = append(r.Parts, Part{i, fence})
			}
		}
	}
	version := func(n int) func(*Row) { return func(r *Row) { r.Version = n } }
	saw := func(n int) Event { return Event{What: Saw, Attempt: n} }
	expiredAfter := func(d time.Duration) func(*Row) {
		return func(r *Row) { r.CreatedAt, r.EndedAt = time.Unix(0, 0), time.Unix(0, 0).Add(d) }
	}
	record := func(r *Row) { r.Records = []Record{{1, 1, "retried", "w/1"}} }
	for name, c := range map[string]struct {
		history []Event
		table   []Row
		want    Verdict
	}{
		"steps of two claims": {
			append(ranOnce(1, OutcomeFailed, event(StepRan, 1, 1, markStep), event(StepDone, 1, 1, "mark=1"), event(Saved, 1, 1, "2")),
				ranOnce(2, OutcomeDone, event(StepDone, 2, 2, "mark=1"), event(Continued, 2, 2, "2"), event(StepDone, 2, 2, "write=2"))...),
			row1(steppedName, "done", 2, func(r *Row) { parts(1, 1, 2, 2, 2, 2)(r); record(r) }), Verdict{},
		},
		"a recorded step that ran again": {
			append(ranOnce(1, OutcomeFailed, event(StepDone, 1, 1, "mark=1")), ranOnce(2, OutcomeDone, event(StepRan, 2, 2, markStep))...),
			row1(steppedName, "done", 2, func(r *Row) { parts(1, 1, 2, 2, 2, 2)(r); record(r) }), Verdict{Doubled: 1},
		},
		"another result": {
			append(ranOnce(1, OutcomeFailed, event(StepDone, 1, 1, "mark=1")), ranOnce(2, OutcomeDone, event(StepDone, 2, 2, "mark=2"))...),
			row1(steppedName, "done", 2, func(r *Row) { parts(1, 1, 2, 2, 2, 2)(r); record(r) }), Verdict{Doubled: 1},
		},
		"a cursor that went back": {
			append(ranOnce(1, OutcomeFailed, event(Saved, 1, 1, "2")), ranOnce(2, OutcomeDone, event(Continued, 2, 2, "1"))...),
			row1(steppedName, "done", 2, func(r *Row) { parts(1, 1, 2, 2, 2, 2)(r); record(r) }), Verdict{Doubled: 1},
		},
		"a part written twice": {
			ranOnce(1, OutcomeDone), row1(steppedName, "done", 1, func(r *Row) { parts(1, 1, 1, 1, 1, 1)(r); r.Parts[1].Part = 0 }), Verdict{Doubled: 1, StaleSettles: 1},
		},
		"a missing part": {ranOnce(1, OutcomeDone), row1(steppedName, "done", 1, parts(1, 1, 1)), Verdict{StaleSettles: 1}},
		"a part of a claim that was lost": {
			append(ranOnce(1, OutcomeFailed), ranOnce(2, OutcomeDone)...),
			row1(steppedName, "done", 2, func(r *Row) { parts(1, 2, 1, 2, 2, 2)(r); record(r) }), Verdict{StaleSettles: 1},
		},
		"a saved cursor without its part": {ranOnce(1, OutcomeDiscarded, event(Saved, 1, 1, "3")), row1(steppedName, "dead", 1, func(r *Row) {
			parts(1, 1)(r)
			r.Records = []Record{{1, 1, "dead", "w/1"}}
		}), Verdict{StaleSettles: 1}},
		"a change that a run saw": {append(ranOnce(2, OutcomeDone, saw(1)), event(Amended, 0, 1, "")), row1(amendedName, "done", 2, version(1)), Verdict{}},
		"a change that is lost":   {append(ranOnce(2, OutcomeDone, saw(0)), event(Amended, 0, 1, "")), row1(amendedName, "done", 2, nil), Verdict{Lost: 1}},
		"a change of a run":       {append(ranOnce(2, OutcomeDone, saw(0)), event(Amended, 0, 1, "")), row1(amendedName, "done", 2, version(1)), Verdict{Lost: 1}},
		"a refused change":        {append(ranOnce(2, OutcomeDone, saw(1)), event(Refused, 0, 1, "")), row1(amendedName, "done", 2, version(1)), Verdict{Lost: 1}},
		"a handler that was given up": {
			append(append(ranOnce(1, OutcomeDone), event(GivenUp, 1, 1, "")), ranOnce(2, OutcomeDone)...),
			row1(plainName, "done", 2, record), Verdict{},
		},
		"the end of a handler that was given up":   {append(ranOnce(1, OutcomeDone), event(GivenUp, 1, 1, "")), row1(plainName, "done", 1, nil), Verdict{StaleSettles: 1}},
		"a task that expired":                      {nil, row1(expiringName, "cancelled", 0, expiredAfter(time.Second)), Verdict{}},
		"a task that expired early":                {nil, row1(expiringName, "cancelled", 0, expiredAfter(time.Millisecond)), Verdict{StaleSettles: 1}},
		"a task that expired after it had started": {ranOnce(1, OutcomeFailed), row1(expiringName, "cancelled", 1, func(r *Row) { expiredAfter(time.Second)(r); record(r) }), Verdict{StaleSettles: 1}},
		"a task that repeats itself":               {append(ranOnce(1, OutcomeRepeated), ranOnce(2, OutcomeDone)...), row1(repeatedName, "done", 2, nil), Verdict{}},
		"a repeat that ended its task":             {ranOnce(1, OutcomeRepeated), row1(repeatedName, "done", 1, nil), Verdict{StaleSettles: 1}},
		"failures that counted after a repeat":     {slices.Concat(ranOnce(1, OutcomeRepeated), ranOnce(2, OutcomeFailed)), row1(repeatedName, "dead", 2, func(r *Row) { r.Records = []Record{{2, 2, "dead", "w/1"}} }), Verdict{StaleSettles: 1}},
		"a dead task that halts its sequence":      {ranOnce(1, OutcomeDiscarded), row1(haltingName, "dead", 1, func(r *Row) { r.Records = []Record{{1, 1, "dead", "w/1"}} }), Verdict{Lost: 1}},
	} {
		got := Checker{MaxAttempts: maxAttempts}.Check(c.history, c.table)
		if got.Lost != c.want.Lost || got.Doubled != c.want.Doubled || got.StaleSettles != c.want.StaleSettles || got.Early+got.Exceeded != 0 {
			t.Errorf("%s: %+v, want %d lost, %d doubled, %d stale", name, got, c.want.Lost, c.want.Doubled, c.want.StaleSettles)
		}
	}
}
