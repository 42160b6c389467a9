package periodic

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/falldue/falldue/internal/store"
)

// maxTries limits how often a change is tried that others undo.
const maxTries = 20

var errContended = errors.New("periodic: the schedule kept changing while it was read; try again")

// define stores the definitions, unless that has been done.
func (s *Scheduler) define(ctx context.Context) error {
	if s.stored {
		return nil
	}
	for range maxTries {
		list, err := s.read(ctx, nil)
		if err != nil {
			return fmt.Errorf("store the schedules: %w", err)
		}
		done, err := s.defineAll(ctx, list)
		if err != nil {
			return fmt.Errorf("store the schedules: %w", err)
		}
		if s.stored = done; done {
			return nil
		}
	}
	return errContended
}

// defineAll stores the definitions that differ from what is stored, and reports whether
// nothing was left to be done.
func (s *Scheduler) defineAll(ctx context.Context, list []store.Schedule) (done bool, err error) {
	there := map[string]store.Schedule{}
	for _, one := range list {
		there[one.Name] = one
	}
	now, err := s.now(ctx, list)
	if err != nil {
		return false, err
	}
	done = true
	for name, d := range s.defined {
		was, known := there[name]
		if known && problem(was) != nil {
			continue // its ticks fail, and say so
		}
		if known && was.Hash == d.Hash {
			s.mu.Lock()
			s.seen[name] = was
			s.mu.Unlock()
			continue
		}
		done = false // look again: another process may have been faster
		if !known {
			s.begin(&d.Definition, store.Time(now))
			if _, err := s.store.PutSchedule(ctx, d.Definition, store.SchedulePause{}); err != nil {
				return false, fmt.Errorf("schedule %s: %w", name, err)
			}
			continue
		}
		if _, err := s.replace(ctx, was, store.Time(now), "this process has started"); err != nil {
			return false, fmt.Errorf("schedule %s: %w", name, err)
		}
	}
	return done, nil
}

// replace stores the definition of this process instead of another one, and reports false if
// another process was faster. If it ticks at other times, it does so after from.
func (s *Scheduler) replace(ctx context.Context, was store.Schedule, from time.Time, why string) (bool, error) {
	d := s.defined[was.Name].Definition
	s.begin(&d, from)
	d.Defined = max(was.Now, was.Defined+1)
	if was.Spec == d.Spec && was.Zone == d.Zone {
		d.Started, d.Next = was.Started, was.Next
	}
	changed, err := s.store.ChangeSchedule(ctx, was, d)
	if changed {
		s.log.Info("falldue: a schedule was changed", "schedule", was.Name, "why", why, "spec", d.Spec, "zone", d.Zone, "kind", d.Kind, "by", d.DefinedBy,
			"was_spec", was.Spec, "was_zone", was.Zone, "was_kind", was.Kind, "was_by", was.DefinedBy)
	}
	return changed, err
}

// begin sets the times of a definition that is stored now.
func (s *Scheduler) begin(d *store.Definition, now time.Time) {
	d.Defined, d.Started, d.Next = now.UnixMicro(), now.UnixMicro(), s.defined[d.Name].spec.Next(now, now).UnixMicro()
}

// now returns the time by the database's clock.
func (s *Scheduler) now(ctx context.Context, list []store.Schedule) (int64, error) {
	if len(list) > 0 {
		return list[0].Now, nil
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	now, err := s.store.Now(ctx)
	return now.UnixMicro(), err
}

// restore stores a schedule again that a failover has lost, or to which it has brought back an
// earlier definition. It continues with the tick that this process has seen last.
func (s *Scheduler) restore(ctx context.Context, is store.Schedule) (err error) {
	s.mu.Lock()
	was, known := s.seen[is.Name]
	s.mu.Unlock()
	if !known { // its row could not be used, and has been removed
		was.Definition = s.defined[is.Name].Definition
		now, err := s.store.Now(ctx)
		if err != nil {
			return err
		}
		s.begin(&was.Definition, now)
	}
	done := false
	if is.Hash == "" { // there is none
		done, err = s.store.PutSchedule(ctx, was.Definition, was.SchedulePause)
	} else {
		if is.Spec == was.Spec && is.Zone == was.Zone {
			was.Started, was.Next = is.Started, is.Next
		}
		done, err = s.store.ChangeSchedule(ctx, is, was.Definition)
	}
	if done {
		s.log.Warn("falldue: a schedule was lost, and has been restored", "schedule", is.Name, "spec", was.Spec, "next", store.Time(was.Next))
	}
	return err
}
