package periodic

import (
	"context"

	"github.com/falldue/falldue/internal/store"
)

// While two releases run, all processes tick by the stored definition, which belongs to the
// release that started last. If that one ends first, as after a rollback, nothing but the others
// can notice. So a process with another definition asks in the row, and one that has the stored
// definition answers. If none does, the process stores its own.

const (
	// askEvery is the time in microseconds between two questions of a process about one schedule.
	askEvery = int64(30e6)
	// answerWithin is the time in microseconds that an answer may take. Processes read
	// questions every readEvery.
	answerWithin = int64(15e6)
)

// talk is what a process says to others.
type talk struct{ ask, answer []string }

// unanswered reports whether a schedule has a definition that no process has. It adds to says
// what this process has to say about the schedule. s.mu is held.
func (s *Scheduler) unanswered(one store.Schedule, says *talk) bool {
	switch {
	case one.Hash == s.defined[one.Name].Hash:
		if one.Asked != 0 {
			says.answer = append(says.answer, one.Name)
		}
	case one.Asked == 0:
		if one.Now >= s.askAgain[one.Name] {
			says.ask = append(says.ask, one.Name)
			s.askAgain[one.Name] = one.Now + askEvery
		}
	default:
		return one.Now-one.Asked >= answerWithin
	}
	return false
}

// say asks and answers other processes.
func (s *Scheduler) say(ctx context.Context, t talk) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := s.store.AnswerSchedules(ctx, t.answer); err != nil {
		return err
	}
	return s.store.AskSchedules(ctx, t.ask)
}
