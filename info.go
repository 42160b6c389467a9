package falldue

import (
	"encoding/json"
	"time"

	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/internal/statements"
)

// State is where a task stands.
type State string

// The states of a task.
const (
	// Open tasks wait, or run; they are due when their policy's delay is over.
	Open State = statements.StateOpen
	// Snoozed tasks wait until UpdatedAt, without a delay on top: after [Snooze] or
	// [RetryAfter], or because their worker stopped while they ran.
	Snoozed State = statements.StateSnoozed
	// Done tasks succeeded; they stay for Config.DoneRetention.
	Done State = statements.StateDone
	// Dead tasks failed for the last time; they stay for Config.DeadRetention, and
	// can be revived.
	Dead State = statements.StateDead
	// Cancelled tasks were called off; they stay for Config.DeadRetention, and can
	// be revived.
	Cancelled State = statements.StateCancelled
)

var states = []State{Open, Snoozed, Done, Dead, Cancelled}

// TaskInfo is a task as it stands in the table.
type TaskInfo struct {
	ID          int64
	Queue, Kind string
	// Policy is the key of the task's own policy, "" where its kind's holds.
	Policy   string
	Priority int
	State    State
	// Attempts counts the executions that count, a running one included.
	Attempts int
	// MaxAttempts is the task's own limit; 0 where its policy's holds.
	MaxAttempts int
	// Fence counts the claims of the task.
	Fence int64
	// UpdatedAt is the moment its wait counts from: when it was enqueued for,
	// when it last failed plus its jitter, the end of its lease while it runs,
	// the moment a snooze ends; or when it finished.
	UpdatedAt time.Time
	CreatedAt time.Time
	// FirstAttemptedAt and AttemptedAt are when its first attempt and its latest
	// run began; zero before the first.
	FirstAttemptedAt, AttemptedAt time.Time
	// Now is the database's clock when the task was read.
	Now time.Time
	// ClaimedBy is the worker that runs the task, or whose lease ran out.
	ClaimedBy string
	// LastError is the text of the latest failure, its first 16 KiB; "" if none.
	LastError string
	Payload   json.RawMessage
	// Result is what the handler set, nil if nothing.
	Result json.RawMessage
}

// Due is when the task falls due under a policy: its own or its kind's, which
// the caller knows. For a running task that is when its lease is over and it is
// taken for lost; for a finished one it is the zero time.
func (t TaskInfo) Due(p backoff.Policy) time.Time {
	switch t.State {
	case Open:
		delay, _ := p.Wait(int64(t.Attempts))
		return t.UpdatedAt.Add(delay)
	case Snoozed:
		return t.UpdatedAt
	}
	return time.Time{}
}

// Attempt is what is recorded of one attempt that did not succeed.
type Attempt struct {
	// Attempt is the task's attempt, Fence its claim.
	Attempt int
	Fence   int64
	// Outcome is what became of the attempt.
	Outcome    Outcome
	Worker     string
	FinishedAt time.Time
	// Duration is how long the handler ran, 0 where nobody knows.
	Duration time.Duration
	// Error is its text, the first 16 KiB.
	Error string
	// Stack is that of a panic, or "".
	Stack string
}

// Outcome is what became of a recorded attempt.
type Outcome string

// The outcomes of recorded attempts.
const (
	// OutcomeRetried attempts failed, and the task runs again.
	OutcomeRetried = Outcome(statements.OutcomeRetried)
	// OutcomeDead attempts failed, and the task is dead.
	OutcomeDead = Outcome(statements.OutcomeDead)
	// OutcomeLost attempts ended with their worker, or with its lease.
	OutcomeLost = Outcome(statements.OutcomeLost)
)

// Count is how many tasks of a queue and kind are in a state.
type Count struct {
	Queue, Kind string
	State       State
	Tasks       int64
}
