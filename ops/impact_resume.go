package ops

import "github.com/falldue/falldue"

// Woken counts the tasks that can run after the end of a pause: see [Profile.ResumeImpact].
type Woken struct {
	// Due is how many tasks of the pause's subject are due, and run as soon as the pause ends. Unknown is how many other
	// tasks of the subject have failed and have an unknown policy: any of these may be due.
	Due, Unknown int64
}

// ResumeImpact returns the tasks that could run if a subject were resumed. pauses are the pauses in effect, from
// [Ops.Pauses]: a task that another pause also matches stays paused. For a subject with a key, use the profile of that
// key. Pauses of other keys are ignored.
func (p *Profile) ResumeImpact(s falldue.Subject, pauses []Pause) (Woken, error) {
	if err := p.covers(s); err != nil {
		return Woken{}, err
	}
	var w Woken
	for g, t := range p.all {
		paused, still := false, false
		for _, other := range pauses {
			named := Override{Subject: other.Subject, IncludeOwn: true}.Names(t)
			if other.String() == s.String() {
				paused = paused || named
			} else {
				still = still || named
			}
		}
		if !paused || still {
			continue
		}
		if policy, known := p.policies.Of(t); known || !g.Delayed() {
			w.Due += dueBy(g, delayOf(g, policy), p.At.UnixMicro())
		} else {
			w.Unknown += g.Tasks
		}
	}
	return w, nil
}
