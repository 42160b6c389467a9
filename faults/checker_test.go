package faults

import (
	"strings"
	"testing"
)

// scenario is the history of one task, "t", and its row. Its events happen one after
// the other.
type scenario struct {
	events []Event
	rows   []Row
}

func (s scenario) and(process, what string, fence int64, attempt int, outcome string) scenario {
	e := Event{At: int64(len(s.events)), What: what, Process: process, Key: "t", ID: 7, Fence: fence, Attempt: attempt, Outcome: outcome}
	s.events = append(s.events[:len(s.events):len(s.events)], e)
	return s
}

func (s scenario) acknowledged() scenario { return s.and("e", Acknowledged, 0, 0, "") }
func (s scenario) started(process string, fence int64, attempt int) scenario {
	return s.and(process, Started, fence, attempt, "")
}
func (s scenario) ended(process string, fence int64, attempt int, outcome string) scenario {
	return s.and(process, Ended, fence, attempt, outcome)
}

// ran adds a run with no event between its start and its end.
func (s scenario) ran(process string, fence int64, attempt int, outcome string) scenario {
	return s.started(process, fence, attempt).ended(process, fence, attempt, outcome)
}

// row sets the row.
func (s scenario) row(state string, attempts int, fence, result int64, records ...Record) scenario {
	s.rows = append(s.rows[:len(s.rows):len(s.rows)], Row{ID: 7, Key: "t", State: state, Attempts: attempts, Fence: fence, Result: result, Records: records})
	return s
}

// effects sets the effects, and makes the task transactional.
func (s scenario) effects(fences ...int64) scenario {
	r := s.rows[0]
	r.Transactional, r.Effects = true, fences
	s.rows = []Row{r}
	return s
}

// The first attempt, retried.
func retried(process string) Record { return Record{1, 1, "retried", process + "/5e"} }

func died(process string, fence int64, attempt int) Record {
	return Record{fence, attempt, "dead", process + "/5e"}
}

func vanished(process string, fence int64, attempt int) Record {
	return Record{fence, attempt, "lost", process + "/5e"}
}

// reports sets the progress, of a task that reports it.
func (s scenario) reports(fence int64, message string) scenario {
	r := s.rows[0]
	r.Reports, r.Report = true, Report{7, fence, message}
	s.rows = []Row{r}
	return s
}

var acked = scenario{}.acknowledged()

func TestCheckerAcceptsWhatMayHappen(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		scenario
		calm bool
	}{
		"done at once":            {acked.ran("a", 1, 1, OutcomeDone).row("done", 1, 1, 1), true},
		"failed, then done":       {acked.ran("a", 1, 1, OutcomeFailed).ran("b", 2, 2, OutcomeDone).row("done", 2, 2, 2, retried("a")), true},
		"snoozed, then done":      {acked.ran("a", 1, 1, OutcomeSnoozed).ran("b", 2, 1, OutcomeDone).row("done", 1, 2, 2), true},
		"discarded":               {acked.ran("a", 1, 1, OutcomeDiscarded).row("dead", 1, 1, 0, died("a", 1, 1)), true},
		"never acknowledged":      {scenario{}.ran("a", 1, 1, OutcomeDone).row("done", 1, 1, 1), true},
		"nothing of an undone":    {scenario{}.and("e", Undone, 0, 0, ""), true},
		"effect with the end":     {acked.ran("a", 1, 1, OutcomeDone).and("a", Committed, 1, 1, "").row("done", 1, 1, 1).effects(1), true},
		"unsure, and committed":   {acked.ran("a", 1, 1, OutcomeUnsure).row("done", 1, 1, 1).effects(1), false},
		"unsure, and undone":      {acked.ran("a", 1, 1, OutcomeUnsure).ran("a", 2, 2, OutcomeDone).row("done", 2, 2, 2, retried("a")).effects(2), false},
		"killed in the middle":    {acked.started("a", 1, 1).ran("b", 2, 2, OutcomeDone).row("done", 2, 2, 2, vanished("a", 1, 1)), false},
		"killed before the start": {acked.ran("b", 2, 2, OutcomeDone).row("done", 2, 2, 2, vanished("a", 1, 1)), false},
		"given back unstarted":    {acked.ran("b", 2, 1, OutcomeDone).row("done", 1, 2, 2), false},
		"two killed in a row, the first without a record": {
			acked.started("a", 1, 1).started("b", 2, 2).ran("c", 3, 3, OutcomeDone).row("done", 3, 3, 3, vanished("b", 2, 2)), false,
		},
		"overtaken, its late end refused": {
			acked.started("a", 1, 1).started("b", 2, 2).ended("a", 1, 1, OutcomeFailed).ended("b", 2, 2, OutcomeDone).
				row("done", 2, 2, 2, vanished("a", 1, 1)), false,
		},
		"ended as done, never settled":      {acked.ran("a", 1, 1, OutcomeDone).ran("b", 2, 2, OutcomeDone).row("done", 2, 2, 2, vanished("a", 1, 1)), false},
		"progress of the last run":          {acked.ran("a", 1, 1, OutcomeDone).row("done", 1, 1, 1).reports(1, "claim 1"), true},
		"progress of a run that had failed": {acked.ran("a", 1, 1, OutcomeDiscarded).row("dead", 1, 1, 0, died("a", 1, 1)).reports(0, ""), true},
		"last attempt lost": {
			acked.started("a", 1, 1).started("a", 2, 2).row("dead", 2, 3, 0, vanished("a", 2, 2)), false,
		},
	} {
		if v := (Checker{Calm: c.calm, MaxAttempts: 2}).Check(c.events, c.rows); !v.OK() {
			t.Errorf("%s: found %v", name, v.Findings)
		}
	}
}

func TestCheckerFindsWhatMustNotHappen(t *testing.T) {
	t.Parallel()
	const lost, doubled, stale = "lost", "doubled", "stale settle"
	for name, c := range map[string]struct {
		scenario
		calm bool
		want string // "" is any
	}{
		"acknowledged before the commit": {acked, false, lost},
		"vanished after it ran":          {scenario{}.ran("a", 1, 1, OutcomeDone), false, lost},
		"never ended":                    {acked.ran("a", 1, 1, OutcomeFailed).row("open", 1, 1, 0, retried("a")), false, lost},

		"progress lost":           {acked.ran("a", 1, 1, OutcomeDone).row("done", 1, 1, 1).reports(0, ""), true, stale},
		"progress of a lost run":  {acked.started("a", 1, 1).ran("b", 2, 2, OutcomeDone).row("done", 2, 2, 2, vanished("a", 1, 1)).reports(1, "claim 1"), false, stale},
		"progress of another run": {acked.ran("a", 1, 1, OutcomeDone).row("done", 1, 1, 1).reports(1, "claim 2"), true, stale},

		"one claim run by two":          {acked.started("a", 1, 1).started("b", 1, 1).ended("a", 1, 1, OutcomeDone).row("done", 1, 1, 1), false, doubled},
		"one attempt run by two":        {acked.started("a", 1, 1).started("b", 2, 1).ended("b", 2, 1, OutcomeDone).row("done", 1, 2, 2), false, doubled},
		"rolled back and run":           {scenario{}.and("e", Undone, 0, 0, "").ran("a", 1, 1, OutcomeDone).row("done", 1, 1, 1), false, doubled},
		"rolled back and there":         {scenario{}.and("e", Undone, 0, 0, "").row("done", 1, 1, 1), false, doubled},
		"in the table twice":            {acked.ran("a", 1, 1, OutcomeDone).row("done", 1, 1, 1).row("done", 1, 1, 1), false, doubled},
		"run after its commit":          {acked.ran("a", 1, 1, OutcomeDone).and("a", Committed, 1, 1, "").ran("b", 2, 2, OutcomeDone).row("done", 2, 2, 2).effects(1, 2), false, doubled},
		"two effects":                   {acked.ran("a", 1, 1, OutcomeUnsure).ran("b", 2, 2, OutcomeDone).row("done", 2, 2, 2, vanished("a", 1, 1)).effects(1, 2), false, doubled},
		"run after its end, in calm":    {acked.ran("a", 1, 1, OutcomeDone).ran("b", 2, 2, OutcomeDone).row("done", 2, 2, 2, retried("a")), true, doubled},
		"run beside another, in calm":   {acked.started("a", 1, 1).ran("b", 2, 2, OutcomeDone).ended("a", 1, 1, OutcomeFailed).row("done", 2, 2, 2), true, doubled},
		"claimed again without a cause": {acked.started("a", 1, 1).ran("b", 2, 2, OutcomeDone).row("done", 2, 2, 2), true, doubled},

		"late end of the first taken for that of the second": {
			acked.started("a", 1, 1).started("b", 2, 2).ended("a", 1, 1, OutcomeDone).ended("b", 2, 2, OutcomeDone).
				row("done", 2, 2, 1, vanished("a", 1, 1)), false, stale,
		},
		"late failure recorded": {
			acked.started("a", 1, 1).started("b", 2, 2).ended("a", 1, 1, OutcomeFailed).ended("b", 2, 2, OutcomeDone).
				row("done", 2, 2, 2, retried("a")), false, stale,
		},
		"late effect": {
			acked.started("a", 1, 1).started("b", 2, 2).ended("a", 1, 1, OutcomeDone).ended("b", 2, 2, OutcomeFailed).
				row("done", 2, 2, 1, vanished("a", 1, 1)).effects(1), false, stale,
		},
		"done while it failed":          {acked.ran("a", 1, 1, OutcomeFailed).row("done", 1, 1, 1), false, stale},
		"done while it runs":            {acked.started("a", 1, 1).row("done", 1, 1, 0), false, stale},
		"dead while it was done":        {acked.ran("a", 1, 1, OutcomeDone).row("dead", 1, 1, 0, died("a", 1, 1)), false, stale},
		"dead without ever running":     {acked.row("dead", 0, 0, 0), false, stale},
		"effect without an end":         {acked.ran("a", 1, 1, OutcomeDiscarded).row("dead", 1, 1, 0, died("a", 1, 1)).effects(1), false, stale},
		"end without its effect":        {acked.ran("a", 1, 1, OutcomeDone).row("done", 1, 1, 1).effects(), false, stale},
		"committed effect gone":         {acked.ran("a", 1, 1, OutcomeUnsure).and("a", Committed, 1, 1, "").ran("b", 2, 2, OutcomeDiscarded).row("dead", 2, 2, 0, died("b", 2, 2)).effects(), false, ""},
		"attempt not counted":           {acked.ran("a", 1, 1, OutcomeFailed).ran("b", 2, 2, OutcomeDone).row("done", 1, 2, 2, retried("a")), false, stale},
		"attempt counted twice":         {acked.ran("a", 1, 1, OutcomeFailed).ran("b", 2, 3, OutcomeDone).row("done", 3, 2, 2, retried("a")), false, stale},
		"snooze counted, in calm":       {acked.ran("a", 1, 1, OutcomeSnoozed).ran("b", 2, 2, OutcomeDone).row("done", 2, 2, 2), true, stale},
		"failure not recorded":          {acked.ran("a", 1, 1, OutcomeFailed).ran("b", 2, 2, OutcomeDone).row("done", 2, 2, 2), false, stale},
		"last failure not recorded":     {acked.ran("a", 1, 1, OutcomeDiscarded).row("dead", 1, 1, 0), false, stale},
		"record of another worker":      {acked.ran("a", 1, 1, OutcomeFailed).ran("b", 2, 2, OutcomeDone).row("done", 2, 2, 2, retried("b")), false, stale},
		"record of a failure not there": {acked.ran("a", 1, 1, OutcomeSnoozed).ran("b", 2, 1, OutcomeDone).row("done", 1, 2, 2, retried("a")), false, stale},
		"taken for lost, in calm":       {acked.ran("a", 1, 1, OutcomeFailed).ran("b", 2, 2, OutcomeDone).row("done", 2, 2, 2, vanished("a", 1, 1)), true, stale},
	} {
		v := Checker{Calm: c.calm, MaxAttempts: 2}.Check(c.events, c.rows)
		if v.OK() || !strings.HasPrefix(v.Findings[0], c.want) {
			t.Errorf("%s: found %v, want %q", name, v.Findings, c.want)
		}
	}
}

func TestCheckerCounts(t *testing.T) {
	t.Parallel()
	s := acked.ran("a", 1, 1, OutcomeFailed).ran("b", 2, 2, OutcomeDone).row("done", 2, 2, 2, retried("a"))
	if v := (Checker{}).Check(s.events, s.rows); v.Tasks != 1 || v.Attempts != 2 {
		t.Errorf("counted %d tasks and %d attempts, want 1 and 2", v.Tasks, v.Attempts)
	}
}

func TestHistoryComesBackAsWritten(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	h, err := OpenHistory(dir, "a")
	if err != nil {
		t.Fatal(err)
	}
	want := []Event{
		{What: Acknowledged, Process: "a", Key: "k", ID: 3, Outcome: outcomeNone},
		{What: Ended, Process: "a", Key: "k", ID: 3, Fence: 2, Attempt: 1, Outcome: OutcomeFailed},
	}
	h.Write(want[0])
	h.Write(want[1])
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	got, err := ReadHistories(dir)
	if err != nil || len(got) != len(want) {
		t.Fatalf("read %+v, %v, want %+v", got, err, want)
	}
	for i := range got {
		if got[i].At <= 0 || i > 0 && got[i].At < got[i-1].At {
			t.Errorf("event %d is at %d", i, got[i].At)
		}
		if got[i].At = 0; got[i] != want[i] {
			t.Errorf("read %+v, want %+v", got[i], want[i])
		}
	}
}

func TestHalfALineOfHistoryIsNoEvent(t *testing.T) {
	t.Parallel()
	events, err := parseHistory("a", "5 started k 3 2 1 -\n6 ended k 3 2 1")
	if err != nil || len(events) != 1 || events[0].What != Started {
		t.Errorf("read %+v, %v, want the first line", events, err)
	}
	if _, err := parseHistory("a", "5 started k 3 2 -\n"); err == nil {
		t.Error("a whole line with a field missing passed for an event")
	}
}
