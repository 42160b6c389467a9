package ops

import (
	"context"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/control"
	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/internal/store"
)

// Pause is a pause ([falldue.Queue.Pause]) as [Ops.Pauses] lists it.
type Pause struct {
	falldue.Subject
	At    time.Time // when the pause began
	Until time.Time // when the pause ends; zero means never
	falldue.Note
}

// selects reports whether a task belongs to the pause's subject.
func (p Pause) selects(t falldue.TaskInfo) bool {
	return control.Subject(p.Subject).Selects(t.Queue, laneOfTask(t))
}

// Pauses lists the pauses that are in effect now, the oldest first. The Key of a subject is in the form of
// [falldue.TaskInfo].Key. Pauses of subjects that this release does not know are left out. A worker that cannot apply
// a pause logs an error, and [RefusedPauses] lists such pauses.
func (o *Ops) Pauses(ctx context.Context) ([]Pause, error) {
	changes, err := o.store.Changes(ctx, store.AllChanges)
	return pausesIn(changes), err
}

// pausesIn returns the pauses that are in effect after changes, which are sorted, the oldest
// first.
func pausesIn(changes []store.StoredChange) []Pause {
	list := []Pause{}
	newest := map[string]store.StoredChange{}
	for _, c := range changes {
		if c.What == statements.ChangePause || c.What == statements.ChangeResume {
			newest[c.Subject] = c
		}
	}
	for _, c := range changes {
		subject, ok := control.ParseSubject(c.Subject)
		if !ok || newest[c.Subject] != c || c.What != statements.ChangePause || c.Ends > 0 && c.Ends <= c.Now {
			continue
		}
		p := Pause{Subject: falldue.Subject(subject), At: store.Time(c.Created), Note: falldue.Note{Who: c.Who, Why: c.Why}}
		if c.Ends > 0 {
			p.Until = store.Time(c.Ends)
		}
		list = append(list, p)
	}
	return list
}
