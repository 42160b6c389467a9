package faults

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Verdict is the result of a [Checker].
type Verdict struct {
	// Tasks counts acknowledged tasks, Attempts counts handlers that started.
	Tasks, Attempts int
	// Lost counts tasks that were acknowledged, or ran, and did not end as done
	// or dead, tasks of flows that were not opened or not cancelled, tasks in a state that no
	// change of their group explains, and ticks of schedules without a task.
	Lost int
	// Doubled counts tasks with an attempt that ran twice, tasks that ran again
	// after their end was committed, tasks that ran although their enqueue
	// was rolled back, and tasks that were stored while another one held their unique key.
	Doubled int
	// StaleSettles counts tasks whose state, attempts, records, progress or effects
	// contradict the history: a settle took effect after another worker's claim,
	// took effect in part, or was made by nobody.
	StaleSettles int
	// Early counts tasks that ran before another one had ended, after which they were to run,
	// or although it had died.
	Early int
	// Exceeded counts tasks that ran beside more tasks than their limit allows, or started
	// although their rate was used up or they had expired. If no count of running tasks succeeded, it is at least 1.
	Exceeded int
	// Findings describe the first few of the tasks counted above.
	Findings []string
}

// OK reports whether the checker found nothing wrong.
func (v Verdict) OK() bool {
	return v.Lost == 0 && v.Doubled == 0 && v.StaleSettles == 0 && v.Early == 0 && v.Exceeded == 0
}

const maxFindings = 20

// Checker judges the history of a run.
type Checker struct {
	// Calm is set for a run in which no lease can have expired. Then a task that
	// its handler ended never runs again, no two runs of a task overlap, and no
	// attempt is recorded as lost.
	Calm bool
	// MaxAttempts is the limit of all tasks.
	MaxAttempts int
}

// life is the history and the row of one task.
type life struct {
	key          string
	ids          []int64 // acknowledged, or seen by handlers
	undone       bool
	retried      bool // may have been
	acknowledged bool
	first        string  // the key that was acknowledged
	existed      []Event // the enqueues that found the task
	dead         []Event // before changes of its group
	retries      []Event
	started      []Event // by fence
	ended        map[int64]Event
	steps        []Event // by fence
	amendments   []Event
	committed    map[int64]bool
	claims       map[int64]time.Time // when they were made, as the database has it
	rows         []Row
}

// Check compares a history with the rows that are in the database after it.
func (c Checker) Check(history []Event, table []Row) Verdict {
	var v Verdict
	lives := map[string]*life{}
	of := func(key string) *life {
		l := lives[key]
		if l == nil {
			l = &life{key: key, ended: map[int64]Event{}, committed: map[int64]bool{}, claims: map[int64]time.Time{}}
			lives[key] = l
		}
		return l
	}
	var givenUp []Event
	for _, e := range history {
		if e.What == GivenUp {
			givenUp = append(givenUp, e)
			continue
		}
		if e.What == Existed && lifeOf(e.Key, e.ID) == e.Key || e.What == Changing || e.What == Changed {
			continue // of no task's life
		}
		l := of(lifeOf(e.Key, e.ID))
		switch e.What {
		case Acknowledged:
			v.Tasks++
			l.acknowledged, l.first = true, e.Key
			l.ids = append(l.ids, e.ID)
		case Existed:
			l.existed = append(l.existed, e)
		case WasDead:
			l.dead = append(l.dead, e)
		case Retrying:
			l.retried = true
		case Retried:
			l.retries = append(l.retries, e)
		case Undone:
			l.undone = true
		case Started:
			v.Attempts++
			l.ids = append(l.ids, e.ID)
			l.started = append(l.started, e)
		case Ended:
			l.ended[e.Fence] = e
		case Committed:
			l.committed[e.Fence] = true
		case Claimed:
			micros, _ := strconv.ParseInt(e.Outcome, 10, 64)
			l.claims[e.Fence] = time.UnixMicro(micros)
		case StepRan, StepDone, Continued, Saved, Misread:
			l.steps = append(l.steps, e)
		case Amended, Refused, Saw:
			l.amendments = append(l.amendments, e)
		case Exceeded:
			v.count(&v.Exceeded, "exceeded", e.Key, e.Outcome+" ran at once")
		}
	}
	for _, r := range table {
		l := of(lifeOf(r.Key, r.ID))
		l.rows = append(l.rows, r)
	}
	giveUp(lives, givenUp)
	groups := changesOf(history)
	for _, l := range lives {
		l.retried = l.retried || slices.ContainsFunc(groups[groupOf(l.key)], made.retries) ||
			slices.ContainsFunc(l.rows, func(r Row) bool { return r.Kind == haltingName || r.Kind == repeatedName })
		sortSteps(l.steps)
		slices.SortStableFunc(l.started, func(a, b Event) int { return int(a.Fence - b.Fence) })
		slices.Sort(l.ids)
		l.ids = slices.Compact(l.ids)
		v.count(&v.Lost, "lost", l.key, c.lost(l))
		v.count(&v.Doubled, "doubled", l.key, c.doubled(l))
		v.count(&v.StaleSettles, "stale settle", l.key, c.stale(l))
		v.count(&v.Exceeded, "exceeded", l.key, startedLate(l))
	}
	for _, f := range tooEarly(lives) {
		v.count(&v.Early, "early", f.key, f.text)
	}
	v.count(&v.Exceeded, "exceeded", limitedName, uncounted(history))
	for _, f := range tooOften(lives) {
		v.count(&v.Exceeded, "exceeded", f.key, f.text)
	}
	for _, f := range slices.Concat(forgotten(lives), notRunAgain(lives), replacedInVain(lives), amendedWrongly(lives), withoutHolder(history, table)) {
		v.count(&v.Lost, "lost", f.key, f.text)
	}
	for _, f := range unexplained(lives, groups) {
		v.count(&v.Lost, "lost", f.key, f.text)
	}
	for _, key := range outOfOrder(lives) {
		v.count(&v.Early, "early", key, "it ran before one of its sequence had ended that was enqueued before it")
	}
	for _, f := range slices.Concat(holdersAtOnce(lives), inTwoTasks(lives)) {
		v.count(&v.Doubled, "doubled", f.key, f.text)
	}
	for _, key := range ticksWithoutTask(table) {
		v.count(&v.Lost, "lost", key, "the tick has no task")
	}
	return v
}

func (v *Verdict) count(n *int, class, key, finding string) {
	if finding == "" {
		return
	}
	*n++
	if len(v.Findings) < maxFindings {
		v.Findings = append(v.Findings, fmt.Sprintf("%s: task %s: %s", class, key, finding))
	}
}

// lost returns how a task was lost, or "".
func (c Checker) lost(l *life) string {
	if groupOf(l.key) != "" {
		return "" // see unexplained
	}
	for _, id := range l.ids {
		if !slices.ContainsFunc(l.rows, func(r Row) bool { return r.ID == id }) {
			return fmt.Sprintf("id %d was acknowledged or ran, and is not in the table", id)
		}
	}
	for _, r := range l.rows {
		if expired := r.State == "cancelled" && r.Kind == expiringName; r.State != "done" && (r.State != "dead" || r.Kind == haltingName) && !expired && len(r.After) == 0 {
			return fmt.Sprintf("id %d ended as %s", r.ID, r.State)
		}
	}
	return ""
}

// doubled returns what happened twice, or "".
func (c Checker) doubled(l *life) string {
	if l.undone && len(l.rows)+len(l.started) > 0 {
		return "it is there although its enqueue was rolled back"
	}
	if len(l.rows) > 1 {
		return fmt.Sprintf("it is %d times in the table", len(l.rows))
	}
	for i, b := range l.started {
		for _, a := range l.started[:i] {
			end, ended := l.ended[a.Fence]
			switch {
			case a.Fence == b.Fence:
				return fmt.Sprintf("claim %d ran in %s and in %s", a.Fence, a.Process, b.Process)
			case a.Attempt >= b.Attempt && !l.retried && end.Outcome != OutcomeSnoozed && end.Outcome != OutcomeStopped:
				return fmt.Sprintf("attempt %d ran as claim %d in %s and as claim %d in %s", b.Attempt, a.Fence, a.Process, b.Fence, b.Process)
			case l.committed[a.Fence]:
				return fmt.Sprintf("claim %d ran after the end of the task was committed by claim %d", b.Fence, a.Fence)
			case c.Calm && (!ended || b.At < end.At):
				return fmt.Sprintf("claim %d ran in %s while claim %d ran in %s", b.Fence, b.Process, a.Fence, a.Process)
			case c.Calm && (end.Outcome == OutcomeDone || end.Outcome == OutcomeDiscarded):
				return fmt.Sprintf("claim %d ran after claim %d ended as %s", b.Fence, a.Fence, end.Outcome)
			}
		}
	}
	if again := ranAgain(l); again != "" {
		return again
	}
	for _, r := range l.rows {
		if twice := partsTwice(r); twice != "" {
			return twice
		}
		if len(r.Effects) > 1 {
			return fmt.Sprintf("its effect was committed %d times, by claims %v", len(r.Effects), r.Effects)
		}
	}
	return ""
}

// stale returns which settle took effect wrongly, or "".
func (c Checker) stale(l *life) string {
	checks := []func(*life, Row) string{c.staleRecord, c.staleEffect, c.staleState, c.staleReport, c.staleParts, c.expiredWrongly, c.remembered, c.missingRecord, c.miscounted}
	if l.retried { // which counts attempts from 0, and of a run that was cancelled before it there is no record
		checks = checks[:7]
	}
	for _, r := range l.rows {
		for _, check := range checks {
			if finding := check(l, r); finding != "" {
				return finding
			}
		}
	}
	return ""
}

// overtaken reports whether a later claim ran before the claim's handler ended,
// that is, before it was settled.
func (l *life) overtaken(fence int64) bool {
	end, ended := l.ended[fence]
	return ended && slices.ContainsFunc(l.started, func(e Event) bool { return e.Fence > fence && e.At < end.At })
}

func (l *life) start(fence int64) (Event, bool) {
	i := slices.IndexFunc(l.started, func(e Event) bool { return e.Fence == fence })
	if i < 0 {
		return Event{}, false
	}
	return l.started[i], true
}

// staleRecord finds a record that a worker wrote under another worker's claim.
func (c Checker) staleRecord(l *life, r Row) string {
	for _, rec := range r.Records {
		start, started := l.start(rec.Fence)
		end, ended := l.ended[rec.Fence]
		if started && (start.Attempt != rec.Attempt || !strings.HasPrefix(rec.Worker, start.Process+"/")) {
			return fmt.Sprintf("claim %d was attempt %d of %s, and is recorded as attempt %d of %s", rec.Fence, start.Attempt, start.Process, rec.Attempt, rec.Worker)
		}
		if rec.Outcome == "lost" {
			if c.Calm {
				return fmt.Sprintf("claim %d is recorded as lost", rec.Fence)
			}
			continue
		}
		if !ended || end.Outcome != OutcomeFailed && end.Outcome != OutcomeDiscarded && end.Outcome != OutcomeUnsure {
			return fmt.Sprintf("claim %d is recorded as %s, and its handler ended as %q", rec.Fence, rec.Outcome, end.Outcome)
		}
		if l.overtaken(rec.Fence) {
			return fmt.Sprintf("claim %d was settled as %s after another had started", rec.Fence, rec.Outcome)
		}
	}
	return ""
}

// staleEffect finds an effect without the end of its task, or the reverse.
func (c Checker) staleEffect(l *life, r Row) string {
	for _, fence := range r.Effects {
		if fence != r.Fence || l.overtaken(fence) {
			return fmt.Sprintf("the effect was committed by claim %d, and claim %d was taken", fence, r.Fence)
		}
	}
	for fence := range l.committed {
		if !slices.Contains(r.Effects, fence) {
			return fmt.Sprintf("claim %d committed an effect that is not there", fence)
		}
	}
	if has, wants := len(r.Effects) > 0, r.Transactional && r.State == "done"; has != wants {
		return fmt.Sprintf("it is %s with %d effects", r.State, len(r.Effects))
	}
	return ""
}

// staleState finds an end that is not that of the last claim.
func (c Checker) staleState(l *life, r Row) string {
	_, started := l.start(r.Fence)
	end := l.ended[r.Fence]
	ending := end.Outcome
	if ending == OutcomeUnsure {
		if len(r.Effects) > 0 {
			ending = OutcomeDone
		} else {
			ending = OutcomeFailed
		}
	}
	switch r.State {
	case "done":
		if ending != OutcomeDone || r.Result != r.Fence {
			return fmt.Sprintf("it is done by claim %d, the last claim is %d, and that ended as %q", r.Result, r.Fence, end.Outcome)
		}
	case "dead":
		if !started && !c.Calm && r.Attempts >= c.maxAttempts(r) {
			return "" // its last attempt was lost with a worker
		}
		if ending != OutcomeFailed && ending != OutcomeDiscarded {
			return fmt.Sprintf("it is dead, and the last claim, %d, ended as %q", r.Fence, end.Outcome)
		}
	}
	return ""
}

// missingRecord finds a failed or lost attempt without a record. The settle of a
// claim records the lost attempt before it, so the first of two lost in a row may
// have none.
func (c Checker) missingRecord(l *life, r Row) string {
	recorded := map[int64]string{}
	for _, rec := range r.Records {
		recorded[rec.Fence] = rec.Outcome
	}
	for _, s := range l.started {
		f := s.Fence
		if recorded[f] != "" {
			continue
		}
		outcome := l.ended[f].Outcome
		if f == r.Fence {
			if r.State == "dead" {
				return fmt.Sprintf("of the last claim, %d, which ended as %q, nothing is recorded", f, outcome)
			}
			continue
		}
		// A cancel ends the claim and takes the next fence. It records nothing about the claim.
		settledNext := f+1 == r.Fence && r.State != "cancelled" || recorded[f+1] == "retried" || recorded[f+1] == "dead"
		if outcome != OutcomeSnoozed && outcome != OutcomeStopped && (c.Calm || settledNext) {
			return fmt.Sprintf("of claim %d, which ended as %q, nothing is recorded", f, outcome)
		}
	}
	return ""
}

// miscounted finds a number of attempts that contradicts the history. Each claim
// that ran counts once, unless it was snoozed or stopped. Each claim that never ran
// was either given back or lost.
func (c Checker) miscounted(l *life, r Row) string {
	var last Event // the claim before, and whether it may not count
	least, most := 0, 0
	for _, s := range l.started {
		unseen := int(s.Fence - last.Fence - 1)
		if c.Calm {
			unseen = 0
		}
		if s.Attempt < least+1 || s.Attempt > most+1+unseen {
			return fmt.Sprintf("claim %d ran as attempt %d, after claim %d, which was attempt %d", s.Fence, s.Attempt, last.Fence, last.Attempt)
		}
		last, least, most = s, s.Attempt, s.Attempt
		switch l.ended[s.Fence].Outcome {
		case OutcomeSnoozed, OutcomeStopped:
			least--
			if c.Calm && s.Fence != r.Fence {
				most--
			}
		}
	}
	most += max(0, int(r.Fence-last.Fence-1))
	if r.Attempts < least || r.Attempts > most {
		return fmt.Sprintf("it has %d attempts; the last to run was attempt %d, claim %d of %d", r.Attempts, last.Attempt, last.Fence, r.Fence)
	}
	return ""
}
