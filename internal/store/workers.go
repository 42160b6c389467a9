package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"time"

	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/internal/pattern"
	"github.com/falldue/falldue/internal/statements"
)

type (
	// Worker is a process that runs tasks, as it announces itself.
	Worker = statements.Worker
	// StoredWorker is a worker as it is stored.
	StoredWorker = statements.StoredWorker
)

// WorkerInfo is the part of a worker's announcement that seldom changes. It is stored as JSON.
type WorkerInfo struct {
	Host    string `json:"host"`
	PID     int    `json:"pid"`
	Release string `json:"release,omitempty"` // of the program
	Library string `json:"library,omitempty"` // the version of falldue
	// Stopping reports whether the worker claims no more tasks.
	Stopping bool                   `json:"stopping,omitempty"`
	Queues   map[string]WorkerQueue `json:"queues"`
	Kinds    map[string]WorkerKind  `json:"kinds"`
	// Refused are the policy overrides that the worker cannot apply.
	Refused []Refusal `json:"refused,omitempty"`
	// Applied has the subjects of the overrides that the worker applies, and when each was set, in microseconds since 1970.
	Applied map[string]int64 `json:"applied,omitempty"`
	// Policies has the keys of per-task policies that the worker cannot read, with the reasons.
	Policies map[string]string `json:"unreadable_policies,omitempty"`
	// RefusedPauses has the subjects of pauses that the worker cannot apply, with the reasons.
	RefusedPauses map[string]string `json:"refused_pauses,omitempty"`
	// Overtime has the kinds of handlers that have not returned although their timeout has
	// passed. Its texts name the tasks.
	Overtime map[string]string `json:"overtime,omitempty"`
	// UnusedLimits has the limits per key that have counted none of the worker's tasks, by their owners.
	UnusedLimits map[string]string `json:"unused_limits,omitempty"`
	// Unread is why the worker cannot read the table of changes, or "".
	Unread string `json:"unread,omitempty"`
}

// Refusal is a policy override that a worker cannot apply.
type Refusal struct {
	Subject string `json:"subject"`
	// Own is the policy that the override would change, and Holds is the policy in effect instead.
	// Both are "" if the worker cannot read the override: then the earlier policies stay in effect.
	Own   string `json:"own,omitempty"`
	Holds string `json:"holds,omitempty"`
	Error string `json:"error"`
}

// Recent is the part of a worker's announcement that changes often. It is stored as JSON.
type Recent struct {
	// Longest are the runs that began first.
	Longest []RunningTask   `json:"longest,omitempty"`
	Running map[string]int  `json:"running"` // handlers, by queue
	Over    time.Duration   `json:"over"`    // the time over which Kinds counts, in nanoseconds
	Kinds   map[string]Runs `json:"kinds"`   // how runs have ended recently
	// Latest and LatestOver are Kinds and Over for a shorter time, in which a failure shows soon.
	Latest     map[string]Runs `json:"latest,omitempty"`
	LatestOver time.Duration   `json:"latest_over,omitempty"`
}

// RunningTask is a task that a worker runs.
type RunningTask struct {
	ID      int64  `json:"id"`
	Kind    string `json:"kind"`
	Queue   string `json:"queue"`
	Attempt int    `json:"attempt"`
	Since   int64  `json:"since"` // its claim, by the database's clock
}

// Runs is how the runs of a kind have ended.
type Runs struct {
	Done   int64 `json:"done,omitempty"`   // tasks that succeeded
	Failed int64 `json:"failed,omitempty"` // attempts that failed
}

// Add adds n times other.
func (r Runs) Add(n int64, other Runs) Runs {
	return Runs{r.Done + n*other.Done, r.Failed + n*other.Failed}
}

// WorkerQueue is a queue that a worker works on.
type WorkerQueue struct {
	Concurrency int     `json:"concurrency"`
	Limits      []Limit `json:"limits,omitempty"`
}

// QueueLimits returns limits as the limits of a queue: each queue that matches a pattern has its own.
func QueueLimits(queue string, limits []Limit) []Limit {
	own := make([]Limit, len(limits))
	for i, l := range limits {
		own[i] = l.Owned("queue " + queue)
	}
	return own
}

// Queue returns what a worker says of a queue: under the queue's name, or under the longest pattern that matches.
func (w WorkerInfo) Queue(queue string) (WorkerQueue, bool) {
	name, works := pattern.Find(w.Queues, queue)
	q := w.Queues[name]
	q.Limits = QueueLimits(queue, q.Limits)
	return q, works
}

// WorkerKind is a kind that a worker handles.
type WorkerKind struct {
	Policy  string        `json:"policy"`            // the policy in its code
	Timeout time.Duration `json:"timeout,omitempty"` // of its handler, in nanoseconds
	Limits  []Limit       `json:"limits,omitempty"`
}

// Announce stores or replaces the row of a worker.
func (s *Store) Announce(ctx context.Context, w Worker, recent Recent, info WorkerInfo) error {
	text, err := json.Marshal(info)
	if err != nil {
		return fmt.Errorf("falldue: encode the heartbeat of a worker: %w", err)
	}
	w.Info = string(text)
	values, err := valuesOf(w, recent)
	if err != nil {
		return err
	}
	_, err = s.affect(ctx, "announce", statements.Announce, values)
	return err
}

// SeeWorker stores that a worker is still there, and its recent part, but not its info.
// It returns false if the worker is not stored.
func (s *Store) SeeWorker(ctx context.Context, w Worker, recent Recent) (stored bool, err error) {
	values, err := valuesOf(w, recent)
	if err != nil {
		return false, err
	}
	n, err := s.affect(ctx, "see worker", statements.SeeWorker, values)
	return n > 0, err
}

func valuesOf(w Worker, recent Recent) (statements.Values, error) {
	text, err := json.Marshal(recent)
	if err != nil {
		return nil, fmt.Errorf("falldue: encode the running tasks and recent outcomes of a worker: %w", err)
	}
	w.Recent = sql.Null[string]{V: string(text), Valid: true}
	values := statements.Values{}
	statements.WorkerColumns.Set(values, &w)
	return values, nil
}

// DropWorker deletes a worker.
func (s *Store) DropWorker(ctx context.Context, id string) error {
	_, err := s.affect(ctx, "drop worker", statements.DropWorker, statements.Values{"id": id})
	return err
}

// DropLostWorkers deletes the workers that have not been seen for age. It reads them without
// locks, so that it waits for no announcement. A deleted worker that is still there announces
// itself again.
func (s *Store) DropLostWorkers(ctx context.Context, age time.Duration) error {
	var lost []string
	values := statements.Values{"age": age.Microseconds()}
	err := s.read(ctx, s.fixed("lost workers", statements.LostWorkers), values, func() { lost = nil }, func(r row) error {
		lost = append(lost, r.text(0))
		return nil
	})
	for _, id := range lost {
		if err == nil {
			err = s.DropWorker(ctx, id)
		}
	}
	return err
}

// Workers returns all workers that are stored, in the order in which they started. A worker has
// no info if its row cannot be read.
func (s *Store) Workers(ctx context.Context) (list []StoredWorker, err error) {
	err = s.read(ctx, s.fixed("read workers", statements.ReadWorkers), nil, func() { list = nil }, func(r row) error {
		var w StoredWorker
		if statements.StoredWorkerColumns.Scan(r, &w) != nil {
			w.Info = ""
		}
		list = append(list, w)
		return nil
	})
	return list, err
}

// WorkerLife is how long a worker counts as live after it was last seen. Workers announce
// themselves every 15 seconds.
const WorkerLife = time.Minute

// LiveWorkers returns the infos of live workers. It leaves out infos that cannot be read.
func (s *Store) LiveWorkers(ctx context.Context) (infos []WorkerInfo, err error) {
	list, err := s.Workers(ctx)
	for _, w := range list {
		var info WorkerInfo
		if Duration(w.Now-w.Seen) < WorkerLife && json.Unmarshal([]byte(w.Info), &info) == nil {
			infos = append(infos, info)
		}
	}
	return infos, err
}

// AnnouncedKinds returns the kinds that the stored workers handle, by name. It fails if the info of a
// worker cannot be read, since that worker may handle any kind.
func (s *Store) AnnouncedKinds(ctx context.Context) (map[string]bool, error) {
	list, err := s.Workers(ctx)
	if err != nil {
		return nil, err
	}
	kinds := map[string]bool{}
	for _, w := range list {
		var info WorkerInfo
		if err := json.Unmarshal([]byte(w.Info), &info); err != nil {
			return nil, fmt.Errorf("falldue: the heartbeat of worker %.100q cannot be read: %w", w.ID, err)
		}
		for kind := range info.Kinds {
			kinds[kind] = true
		}
	}
	return kinds, nil
}

// affect runs a single statement, and returns how many rows it matched.
func (s *Store) affect(ctx context.Context, name string, make func(dialect.Server, dialect.Tables) statements.Stmt, values statements.Values) (int64, error) {
	return once(ctx, s, func(x runner) (int64, error) {
		result, err := x.exec(ctx, s.fixed(name, make), values, nil)
		if err != nil {
			return 0, err
		}
		return result.RowsAffected()
	})
}
