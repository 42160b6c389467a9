package faults

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// The events of a history.
const (
	// Acknowledged: an enqueue returned without an error, and its transaction
	// was committed.
	Acknowledged = "acknowledged"
	// Existed: an enqueue stored nothing, since another task held the unique key. The ID is
	// that task's.
	Existed = "existed"
	// Undone: the enqueuer rolled its transaction back.
	Undone = "undone"
	// Started: a handler began, after its claim.
	Started = "started"
	// Ended: a handler is about to return. The settle follows, unless it is part
	// of the handler's own transaction.
	Ended = "ended"
	// Committed: the database has acknowledged the commit of the handler's own
	// transaction, which ended its task.
	Committed = "committed"
	// Claimed: the database has recorded when the run was claimed. The outcome is that time,
	// in microseconds since 1970.
	Claimed = "claimed"
	// Changing: an enqueuer is about to change all jobs of a group. The key is the group's, the
	// ID the number of the change, the outcome what it is.
	Changing = "changing"
	// Changed: that change has changed all jobs that it was to change.
	Changed = "changed"
	// WasDead: a job was dead after a claim, before the change of its group whose number is
	// the attempt.
	WasDead = "was-dead"
	// Retrying: an enqueuer is about to retry a job if that is dead.
	Retrying = "retrying"
	// Retried: it has done so. The job was dead after the claim.
	Retried = "retried"
	// StepRan: a run began the function of a step. The outcome is the step's name.
	StepRan = "step-ran"
	// StepDone: a run knows that the database has recorded the step. The outcome is the name and the result.
	StepDone = "step-done"
	// Continued: a step with a cursor began. The outcome is the cursor.
	Continued = "continued"
	// Saved: a step has saved its cursor, which is the outcome.
	Saved = "saved"
	// Misread: the steps of earlier runs could not be read.
	Misread = "misread"
	// Amending: an enqueuer is about to change a job that waits. The attempt is the version of its arguments.
	Amending = "amending"
	// Amended: an enqueuer has changed the job.
	Amended = "amended"
	// Refused: the database has refused the change.
	Refused = "refused"
	// Saw: a run has the version of the arguments.
	Saw = "saw"
	// GivenUp: a worker has given up a handler that got stuck. Only the ID and the fence name it.
	GivenUp = "given-up"
	// Exceeded: a limited job ran beside more of them than the limit allows. The outcome is
	// how many ran.
	Exceeded = "exceeded"
	// Counted: a limited job has counted how many run. The outcome is that number.
	Counted = "counted"
	// Uncounted: it could not.
	Uncounted = "uncounted"
)

// How handlers end.
const (
	OutcomeDone      = "done"
	OutcomeFailed    = "failed" // an error or a panic
	OutcomeDiscarded = "discarded"
	OutcomeSnoozed   = "snoozed"
	OutcomeStopped   = "stopped" // the worker was stopping
	OutcomeLost      = "lost"    // the handler's context ended with its lease
	OutcomeUnsure    = "unsure"  // the answer to its commit was an error
	outcomeNone      = "-"
)

// Event is one line of a history: something that happened to a task, as a process
// saw it.
type Event struct {
	// At is in nanoseconds since 1970. All processes of a run are on one
	// machine and read its clock when they start.
	At   int64
	What string
	// Process is the name of the process that wrote the event.
	Process string
	// Key names the task. Unlike its ID, it is known before the enqueue.
	Key     string
	ID      int64
	Fence   int64
	Attempt int
	// Outcome is how a handler ends; "-" in other events.
	Outcome string
}

var started = time.Now()

// trueTime returns the time. It does not jump with the process's clock.
func trueTime() time.Time { return started.Add(time.Since(started)) }

// History appends events to a file, each by a write of its own, so that the file has
// all events of a process that was killed.
type History struct {
	process string
	file    *os.File
}

const historySuffix = ".history"

// OpenHistory opens the history of a process in folder dir.
func OpenHistory(dir, process string) (*History, error) {
	f, err := os.OpenFile(filepath.Join(dir, process+historySuffix), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600) //nolint:gosec // the folder is the run's own
	if err != nil {
		return nil, err
	}
	return &History{process, f}, nil
}

// Write appends events that happen now. It ends the process if it cannot write them,
// since the history would be wrong from then on.
func (h *History) Write(events ...Event) {
	var b bytes.Buffer
	now := trueTime().UnixNano()
	for _, e := range events {
		if e.Outcome == "" {
			e.Outcome = outcomeNone
		}
		fmt.Fprintln(&b, now, e.What, e.Key, e.ID, e.Fence, e.Attempt, e.Outcome)
	}
	if _, err := h.file.Write(b.Bytes()); err != nil {
		panic(fmt.Errorf("write the history: %w", err))
	}
}

// Close closes the file.
func (h *History) Close() error { return h.file.Close() }

// ReadHistories reads the histories of all processes from folder dir.
func ReadHistories(dir string) ([]Event, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*"+historySuffix))
	if err != nil {
		return nil, err
	}
	var all []Event
	for _, path := range paths {
		text, err := os.ReadFile(path) //nolint:gosec // the folder is the run's own
		if err != nil {
			return nil, err
		}
		events, err := parseHistory(strings.TrimSuffix(filepath.Base(path), historySuffix), string(text))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		all = append(all, events...)
	}
	return all, nil
}

// parseHistory reads the lines of one process. It ignores a last line without an end,
// which a killed process may have written.
func parseHistory(process, text string) ([]Event, error) {
	var events []Event
	for line := range strings.Lines(text) {
		if !strings.HasSuffix(line, "\n") {
			break
		}
		e, err := parseEvent(process, strings.Fields(line))
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", len(events)+1, err)
		}
		events = append(events, e)
	}
	return events, nil
}

func parseEvent(process string, fields []string) (Event, error) {
	if len(fields) != 7 {
		return Event{}, fmt.Errorf("%d fields; an event has 7", len(fields))
	}
	var numbers [7]int64
	for _, i := range []int{0, 3, 4, 5} {
		n, err := strconv.ParseInt(fields[i], 10, 64)
		if err != nil {
			return Event{}, err
		}
		numbers[i] = n
	}
	return Event{
		At: numbers[0], What: fields[1], Process: process, Key: fields[2],
		ID: numbers[3], Fence: numbers[4], Attempt: int(numbers[5]), Outcome: fields[6],
	}, nil
}
