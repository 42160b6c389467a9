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

// What a history tells of.
const (
	// Acknowledged: an enqueue returned without an error, and its transaction
	// was committed.
	Acknowledged = "acknowledged"
	// Undone: the enqueuer rolled its transaction back.
	Undone = "undone"
	// Started: a handler began. The claim was before.
	Started = "started"
	// Ended: a handler is about to return. The settle comes after, except for
	// the one that is in the handler's own transaction.
	Ended = "ended"
	// Committed: the handler's own transaction, which ended its task, was
	// committed and the database said so.
	Committed = "committed"
)

// How handlers end.
const (
	OutcomeDone      = "done"
	OutcomeFailed    = "failed" // an error or a panic
	OutcomeDiscarded = "discarded"
	OutcomeSnoozed   = "snoozed"
	OutcomeStopped   = "stopped" // the worker was told to stop
	OutcomeLost      = "lost"    // the handler was told that its lease is gone
	OutcomeUnsure    = "unsure"  // the answer to its commit was an error
	outcomeNone      = "-"
)

// Event is one line of a history: a moment in the life of a task, as a process
// saw it.
type Event struct {
	// At is in nanoseconds since 1970. All processes of a run are on one
	// machine, and began by reading one clock.
	At   int64
	What string
	// Process is the name of the one that wrote it.
	Process string
	// Key names the task, before it has an ID and after.
	Key     string
	ID      int64
	Fence   int64
	Attempt int
	// Outcome is how a handler ends; "-" in other events.
	Outcome string
}

var started = time.Now()

// trueTime is the time whatever the clock says since the process has started.
func trueTime() time.Time { return started.Add(time.Since(started)) }

// History appends events to a file, each by a write of its own: what a process
// wrote before it was killed is there.
type History struct {
	process string
	file    *os.File
}

const historySuffix = ".history"

// OpenHistory opens the history that a process writes in folder dir.
func OpenHistory(dir, process string) (*History, error) {
	f, err := os.OpenFile(filepath.Join(dir, process+historySuffix), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600) //nolint:gosec // the folder is the run's own
	if err != nil {
		return nil, err
	}
	return &History{process, f}, nil
}

// Write appends events that happen now. A process that cannot write its history
// ends: to go on would falsify it.
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

// ReadHistories reads what all processes wrote in folder dir.
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

// parseHistory reads one process's lines. Of the last one a killed process may
// have written a part; that is no event.
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
