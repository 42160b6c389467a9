package periodic

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"reflect"
	"regexp"
	"runtime/debug"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/store"
)

// Schedule is a task and the times, called ticks, at which it is enqueued.
type Schedule struct {
	// Name names the schedule in the database: 1 to 100 of A-Z a-z 0-9 . _ : / @ -, the
	// first a letter or digit.
	Name string
	// Spec defines the times of the ticks, as for [Parse]: "30 2 * * *", "@daily", "@every 15m". Intervals count from the
	// time when the schedule was first stored, or when its Spec changed.
	Spec string
	// Zone is the time zone of a cron expression, such as "Europe/Berlin". Defaults to UTC.
	Zone string
	// Task is the task that each tick enqueues, with its arguments, queue, priority, key and
	// maximum number of attempts. Kind.Params makes it. It must not set Policy, Unique, Delay or
	// RunAt.
	Task falldue.EnqueueParams
	// TaskAt, if set instead of Task, returns the task of a tick. tick is the time of the tick in Zone, so that the task's
	// arguments can depend on it. A process that enqueues the task calls TaskAt once or more. New calls it, too, to check
	// the task of the next tick.
	TaskAt func(tick time.Time) falldue.EnqueueParams
	// Missed decides what happens to ticks at which no process was running. Defaults to Once.
	Missed Missed
	// NoOverlap skips a tick while the last task of the schedule waits, runs or will be retried. Defaults to false.
	NoOverlap bool
}

// Missed decides what happens to ticks at which no process could enqueue a task, because none was
// running or the database did not answer. Ticks of a paused schedule do not count as missed.
type Missed int

const (
	// Once enqueues one task for all missed ticks together, with the time of the last missed tick.
	Once Missed = 0
	// None enqueues no task for a tick that is more than a minute late.
	None Missed = -1
)

// maxMissed is the greatest number of All.
const maxMissed = 1000

// All enqueues a task for each missed tick, up to a maximum of most tasks: 1 to 1,000. If more ticks were missed, only
// the latest ticks get a task.
func All(most int) Missed {
	if most < 1 {
		most += wrongAll // New refuses it
	}
	return Missed(most)
}

// wrongAll is added to numbers of All that are not allowed, so that they are not Once or None.
const wrongAll = -2

// all returns the number of All.
func (m Missed) all() int {
	if m < None {
		return int(m) - wrongAll
	}
	return int(m)
}

// String returns "once", "none", or for All(5) "all, 5 at most".
func (m Missed) String() string {
	switch m {
	case Once:
		return "once"
	case None:
		return "none"
	}
	return fmt.Sprintf("all, %d at most", m.all())
}

var namePattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:/@-]{0,99}$`)

// definition is a schedule that has been checked.
type definition struct {
	store.Definition
	spec   Spec
	taskAt func(tick time.Time) (store.Entry, error) // nil if each tick has the same task
}

// define checks a schedule.
func (s Schedule) define(q queue) (d definition, err error) {
	if !namePattern.MatchString(s.Name) {
		return d, invalid("schedule %.101q: must be 1 to 100 of A-Z a-z 0-9 . _ : / @ -, the first a letter or digit", s.Name)
	}
	if d.spec, err = Parse(s.Spec, s.Zone); err != nil {
		return d, fmt.Errorf("schedule %s: %w", s.Name, err)
	}
	if s.Missed < None || s.Missed > maxMissed {
		return d, invalid("schedule %s: Missed All(%d): must be Once, None, or All of 1 to %d", s.Name, s.Missed.all(), maxMissed)
	}
	if s.Missed > 1 && s.NoOverlap {
		return d, invalid("schedule %s: Missed All(%d) with NoOverlap: set only one, since the tasks of missed ticks overlap", s.Name, s.Missed)
	}
	d.Definition = store.Definition{Name: s.Name, Spec: s.Spec, Zone: d.spec.zone.String(), Missed: int(s.Missed), Payload: "null"}
	if s.NoOverlap {
		d.Alone = 1
	}
	var args string
	if s.TaskAt == nil {
		args, err = d.setTask(q, s.Task)
	} else {
		err = d.setTaskAt(q, s)
	}
	if err != nil {
		return d, fmt.Errorf("schedule %s: %w", s.Name, err)
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %d %d %d %q %q %d %q %d %q %s",
		d.Spec, d.Zone, d.Missed, d.Alone, d.PerTick, d.Queue, d.Kind, d.Priority, d.Key, d.MaxAttempts, d.Metadata.V, args))
	d.Hash = base64.RawURLEncoding.EncodeToString(sum[:])
	return d, nil
}

// setTask sets the task of each tick, and returns a hash of its kind and arguments.
func (d *definition) setTask(q queue, task falldue.EnqueueParams) (args string, err error) {
	entry, args, err := q.Entry(task)
	if err != nil {
		return "", fmt.Errorf("task: %w", err)
	}
	d.Queue, d.Kind, d.Priority, d.Key, d.MaxAttempts, d.Payload, d.Metadata = entry.Queue, entry.Kind, entry.Priority, entry.Key, entry.MaxAttempts, entry.Payload, entry.Metadata
	return args, nil
}

// setTaskAt sets what makes the task of each tick.
func (d *definition) setTaskAt(q queue, s Schedule) error {
	if !reflect.ValueOf(s.Task).IsZero() {
		return invalid("Task and TaskAt are set: set only one")
	}
	zone := d.spec.zone
	d.taskAt = func(tick time.Time) (e store.Entry, err error) {
		defer func() {
			if v := recover(); v != nil {
				err = fmt.Errorf("TaskAt panicked: %v\n%s", v, debug.Stack())
			}
		}()
		if e, _, err = q.Entry(s.TaskAt(tick.In(zone))); err != nil {
			err = fmt.Errorf("TaskAt(%s): %w", tick.In(zone).Format(time.RFC3339), err)
		}
		return e, err
	}
	now := time.Now()
	entry, err := d.taskAt(d.spec.Next(now, now))
	d.PerTick, d.Queue, d.Kind = 1, entry.Queue, entry.Kind
	return err
}

// late is how late a tick may be so as not to be missed.
const late = time.Minute

// due returns the ticks for which a schedule is to enqueue a task now, and its next tick after
// that.
func due(s store.Schedule, spec Spec) (ticks []time.Time, next time.Time) {
	start, first, now := store.Time(s.Started), store.Time(s.Next), store.Time(s.Now)
	next = spec.Next(start, now)
	most := s.Missed
	switch Missed(s.Missed) {
	case Once:
		most = 1
	case None:
		most = 1
		if since := now.Add(-late); first.Before(since) {
			first = spec.Next(start, since)
		}
	}
	if s.Alone == 1 && s.Unfinished == 1 {
		return nil, next
	}
	return spec.last(start, first, now, most), next
}
