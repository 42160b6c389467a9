package statements

import "database/sql"

// The rows that enter and leave the database. Moments are microseconds since
// 1970. Each type is followed by its columns: statements, batches, parameters
// and the reading of results are all made from these tables.

// Lane identifies a group of tasks with equal delay in a queue.
type Lane struct {
	State    string
	Key      string // "" if the tasks have none
	Priority int
	Kind     string
	Policy   string // "" is the policy of the kind
	Attempts int
}

// Delayed reports whether the tasks of the lane wait for the delay of their policy. Snoozed tasks
// and tasks without an attempt do not, under any policy.
func (l Lane) Delayed() bool { return l.State != StateSnoozed && l.Attempts > 0 }

// New reports whether the tasks of the lane have not started since they were enqueued or retried by hand.
func (l Lane) New() bool { return l.State == StateOpen && l.Attempts == 0 }

// laneColumns are the columns of a lane within its queue, in the order in which
// the index of tasks has them.
var laneColumns = Columns[Lane]{
	col("state", Text, func(l *Lane) any { return &l.State }),
	col("task_key", Text, func(l *Lane) any { return &l.Key }), // lanes without a key are neighbours
	col("priority", Int, func(l *Lane) any { return &l.Priority }),
	col("kind", Text, func(l *Lane) any { return &l.Kind }),
	col("policy", Text, func(l *Lane) any { return &l.Policy }),
	col("attempts", Int, func(l *Lane) any { return &l.Attempts }),
}

// SetLane sets the parameters of [ClaimLane] and [NextLane] that name a lane.
func SetLane(values Values, l Lane) { laneColumns.Set(values, &l) }

// Head is a lane and the anchor of its first task, as [Sweep] and [NextLane] return them.
type Head struct {
	Lane
	Anchor int64
	Now    int64 // by the database's clock
}

// HeadColumns are the columns of a result of [Sweep] and [NextLane].
var HeadColumns = join(
	within(laneColumns, func(h *Head) *Lane { return &h.Lane }),
	Columns[Head]{
		col("anchor", Moment, func(h *Head) any { return &h.Anchor }),
		col("clock", Moment, func(h *Head) any { return &h.Now }),
	})

// AnchorColumns are the columns of a result of [Heads]: a [Head] without its lane.
var AnchorColumns = HeadColumns[len(laneColumns):]

// FoundLane is the head of a lane of a queue, as [Sweep] and [FinishedLanes] return it.
type FoundLane struct {
	Queue string
	Head
}

// FoundColumns are the columns of a result of [Sweep] and [FinishedLanes].
var FoundColumns = join(
	Columns[FoundLane]{col("queue", Text, func(f *FoundLane) any { return &f.Queue })},
	within(HeadColumns, func(f *FoundLane) *Head { return &f.Head }))

// WantedLane is a lane to claim from.
type WantedLane struct {
	Lane
	// Since is a moment before which the lane certainly has no tasks.
	Since int64
	// Formula is the index of the lane's delay in ClaimParams.Formulas, -1 for
	// none.
	Formula int64
	// Running is the state of the lane's tasks while they run: open, or snoozed if
	// they are due as soon as their leases end.
	Running string
	// Most is the limit on attempts of tasks that have none of their own.
	Most int
	// Room is how many tasks the claim may take from the lane.
	Room int
}

// SinceColumns are the columns of the batch of [Heads].
var SinceColumns = join(
	within(laneColumns, func(w *WantedLane) *Lane { return &w.Lane }),
	Columns[WantedLane]{col("since", Int, func(w *WantedLane) any { return &w.Since })})

// LaneColumns are the columns of the batches of [Claim] and [FindDue].
var LaneColumns = join(SinceColumns, Columns[WantedLane]{
	col("formula", Int, func(w *WantedLane) any { return &w.Formula }),
	col("running", Text, func(w *WantedLane) any { return &w.Running }),
	col("most", Int, func(w *WantedLane) any { return &w.Most }),
	col("room", Int, func(w *WantedLane) any { return &w.Room }),
})

// Claimed is a task as a claim returns it. A value that follows from other columns is NULL, since
// drivers allocate nothing for NULL.
type Claimed struct {
	// Place is the place of the task's lane in the batch, from 1. The row of a claim
	// that got no claim slot has the place 0, and no other column of the row counts.
	Place       int
	ID          int64
	Fence       int64            // after Claim, and before Take
	MaxAttempts int              // 0 is the policy's own
	Anchor      int64            // before the claim
	First       sql.Null[int64]  // start of the first attempt; NULL if it is this one
	Created     sql.Null[int64]  // NULL if it is the anchor
	Now         int64            // by the database's clock
	Previous    sql.Null[string] // the worker whose lease had expired
	Payload     []byte
	Metadata    []byte // nil where there is none
}

// ClaimedColumns are the columns of a result of [Claim] and [ClaimLane].
var ClaimedColumns = Columns[Claimed]{
	col("place", Int, func(c *Claimed) any { return &c.Place }),
	col("id", Int, func(c *Claimed) any { return &c.ID }),
	col("fence", Int, func(c *Claimed) any { return &c.Fence }),
	col("max_attempts", Int, func(c *Claimed) any { return &c.MaxAttempts }),
	col("anchor", Moment, func(c *Claimed) any { return &c.Anchor }),
	col("first", Int, func(c *Claimed) any { return &c.First }),
	col("created", Int, func(c *Claimed) any { return &c.Created }),
	col("clock", Moment, func(c *Claimed) any { return &c.Now }),
	col("previous", Text, func(c *Claimed) any { return &c.Previous }),
	col("payload", JSON, func(c *Claimed) any { return &c.Payload }),
	col("metadata", JSON, func(c *Claimed) any { return &c.Metadata }),
}

// Entry is a task to insert.
type Entry struct {
	Queue       string
	Kind        string
	Policy      string
	Key         string
	Priority    int
	MaxAttempts int
	At          sql.Null[int64] // the moment that the wait counts from, if it is valid
	Delay       int64           // else that moment is so many microseconds from now
	Unique      string          // the hash that no other task may have, or ""
	Payload     string
	Metadata    sql.Null[string] // JSON
}

// EnqueueColumns are the columns of the batch of [Enqueue].
var EnqueueColumns = Columns[Entry]{
	col("queue", Text, func(e *Entry) any { return &e.Queue }),
	col("kind", Text, func(e *Entry) any { return &e.Kind }),
	col("policy", Text, func(e *Entry) any { return &e.Policy }),
	col("task_key", Text, func(e *Entry) any { return &e.Key }),
	col("priority", Int, func(e *Entry) any { return &e.Priority }),
	col("max_attempts", Int, func(e *Entry) any { return &e.MaxAttempts }),
	col("at", Int, func(e *Entry) any { return &e.At }),
	col("delay", Int, func(e *Entry) any { return &e.Delay }),
	col("payload", Text, func(e *Entry) any { return &e.Payload }),
}

// UniqueColumns are the columns of the batch where [EnqueueParams] is unique.
var UniqueColumns = join(Columns[Entry]{col("unique_key", Text, func(e *Entry) any { return &e.Unique })}, EnqueueColumns)

// PlainColumns are the columns of the batch where [EnqueueParams] is plain.
var PlainColumns = Columns[Entry]{EnqueueColumns[0], EnqueueColumns[1], EnqueueColumns[len(EnqueueColumns)-1]}

// The same where [EnqueueParams] has metadata.
var (
	enqueueMetadataColumns = withMetadata(EnqueueColumns)
	uniqueMetadataColumns  = withMetadata(UniqueColumns)
	plainMetadataColumns   = withMetadata(PlainColumns)
)

func withMetadata(c Columns[Entry]) Columns[Entry] {
	return join(c, Columns[Entry]{col("metadata", Text, func(e *Entry) any { return &e.Metadata })})
}

// PayloadColumns are the columns of the batch of [EnqueueAlike].
var PayloadColumns = PlainColumns[len(PlainColumns)-1:]

// LongColumns are the columns of an entry that may hold long texts.
var LongColumns = withMetadata(PayloadColumns)

// Key names a claim: a task and its fence.
type Key struct{ TaskID, Fence int64 }

// FenceColumns are the columns of a batch of claims.
var FenceColumns = Columns[Key]{
	col("task_id", Int, func(k *Key) any { return &k.TaskID }),
	col("task_fence", Int, func(k *Key) any { return &k.Fence }),
}

// IDColumns are the columns of a batch of tasks.
var IDColumns = FenceColumns[:1]

// Due is a due task as [DueIn] returns it.
type Due struct {
	ID       int64
	Now      int64  // by the database's clock
	Metadata []byte // nil where there is none
}

// DueColumns are the columns of a result of [DueIn].
var DueColumns = Columns[Due]{
	col("id", Int, func(d *Due) any { return &d.ID }),
	col("clock", Moment, func(d *Due) any { return &d.Now }),
	col("metadata", JSON, func(d *Due) any { return &d.Metadata }),
}

// Finished is a finished task as [Clean] returns it.
type Finished struct{ ID, Anchor int64 }

// FinishedColumns are the columns of a result of [Clean].
var FinishedColumns = Columns[Finished]{
	col("id", Int, func(f *Finished) any { return &f.ID }),
	col("anchor", Moment, func(f *Finished) any { return &f.Anchor }),
}

// KeyColumns are the columns of a batch of keys of policies.
var KeyColumns = Columns[string]{col("policy_key", Text, func(k *string) any { return k })}

// Settlement is how a claim ends.
type Settlement struct {
	Key
	State         string           // the state to go to
	AttemptsDelta int              // what to add to attempts
	Wait          int64            // microseconds from now to the moment that the next wait counts from
	Error         sql.Null[string] // NULL keeps the last one
	Result        sql.Null[string] // JSON
}

// SettleColumns are the columns of the batch of [Settle].
var SettleColumns = join(
	within(FenceColumns, func(s *Settlement) *Key { return &s.Key }),
	Columns[Settlement]{
		col("to_state", Text, func(s *Settlement) any { return &s.State }),
		col("more", Int, func(s *Settlement) any { return &s.AttemptsDelta }),
		col("wait", Int, func(s *Settlement) any { return &s.Wait }),
		col("failure", Text, func(s *Settlement) any { return &s.Error }),
		col("answer", Text, func(s *Settlement) any { return &s.Result }),
	})

// Outcome is how a recorded attempt ended.
type Outcome string

// The outcomes of recorded attempts.
const (
	OutcomeRetried Outcome = "retried"
	OutcomeDead    Outcome = "dead"
	OutcomeLost    Outcome = "lost"
)

// AttemptEntry is an attempt to record.
type AttemptEntry struct {
	Key
	Attempt  int
	Outcome  Outcome
	Worker   string
	Duration int64 // microseconds
	Error    string
	Stack    sql.Null[string]
}

// RecordColumns are the columns of the batch of [Record].
var RecordColumns = Columns[AttemptEntry]{
	col("task_id", Int, func(r *AttemptEntry) any { return &r.TaskID }),
	col("fence", Int, func(r *AttemptEntry) any { return &r.Fence }),
	col("attempt", Int, func(r *AttemptEntry) any { return &r.Attempt }),
	col("outcome", Text, func(r *AttemptEntry) any { return (*string)(&r.Outcome) }),
	col("worker", Text, func(r *AttemptEntry) any { return &r.Worker }),
	col("duration_us", Int, func(r *AttemptEntry) any { return &r.Duration }),
	col("error", Text, func(r *AttemptEntry) any { return &r.Error }),
	col("stack", Text, func(r *AttemptEntry) any { return &r.Stack }),
}

// Task is a task as [List] returns it.
type Task struct {
	ID    int64
	Queue string
	Lane
	MaxAttempts int // 0 is the policy's own
	Fence       int64
	Updated     int64
	Created     int64
	First       int64 // start of the first attempt, where there was one
	Attempted   int64 // start of the last claim, where there was one
	Now         int64 // by the database's clock
	ClaimedBy   string
	LastError   sql.Null[string]
	Payload     []byte
	Result      []byte // nil where there is none
	Metadata    []byte // nil where there is none
}

// TaskColumns are the columns of a result of [List].
var TaskColumns = join(
	Columns[Task]{
		col("id", Int, func(t *Task) any { return &t.ID }),
		col("queue", Text, func(t *Task) any { return &t.Queue }),
	},
	within(laneColumns, func(t *Task) *Lane { return &t.Lane }),
	Columns[Task]{
		col("max_attempts", Int, func(t *Task) any { return &t.MaxAttempts }),
		col("fence", Int, func(t *Task) any { return &t.Fence }),
		col("updated_at", Moment, func(t *Task) any { return &t.Updated }),
		col("created_at", Moment, func(t *Task) any { return &t.Created }),
		col("first_attempted_at", Moment, func(t *Task) any { return &t.First }),
		col("attempted_at", Moment, func(t *Task) any { return &t.Attempted }),
		col("clock", Moment, func(t *Task) any { return &t.Now }),
		col("claimed_by", Text, func(t *Task) any { return &t.ClaimedBy }),
		col("last_error", Text, func(t *Task) any { return &t.LastError }),
		col("payload", JSON, func(t *Task) any { return &t.Payload }),
		col("result", JSON, func(t *Task) any { return &t.Result }),
		col("metadata", JSON, func(t *Task) any { return &t.Metadata }),
	})

// Attempt is a recorded attempt as [Attempts] returns it.
type Attempt struct {
	Fence    int64
	Attempt  int
	Outcome  Outcome
	Worker   string
	Finished int64
	Duration int64 // microseconds
	Error    string
	Stack    sql.Null[string]
}

// AttemptColumns are the columns of a result of [Attempts].
var AttemptColumns = Columns[Attempt]{
	col("fence", Int, func(a *Attempt) any { return &a.Fence }),
	col("attempt", Int, func(a *Attempt) any { return &a.Attempt }),
	col("outcome", Text, func(a *Attempt) any { return (*string)(&a.Outcome) }),
	col("worker", Text, func(a *Attempt) any { return &a.Worker }),
	col("finished_at", Moment, func(a *Attempt) any { return &a.Finished }),
	col("duration_us", Int, func(a *Attempt) any { return &a.Duration }),
	col("error", Text, func(a *Attempt) any { return &a.Error }),
	col("stack", Text, func(a *Attempt) any { return &a.Stack }),
}

// Profiled is the number of tasks with the same delay and with anchors in the same minute.
type Profiled struct {
	Queue       string
	Lane              // without a priority, and with a key only if all of the profile's tasks have it
	Minute      int64 // of the anchors, since 1970
	First, Last int64 // the first and the last anchor
	Tasks       int64
	Now         int64 // by the database's clock
}

// ProfileColumns are the columns of a result of [Profile], which groups by the first six.
var ProfileColumns = Columns[Profiled]{
	col("queue", Text, func(p *Profiled) any { return &p.Queue }),
	col("state", Text, func(p *Profiled) any { return &p.State }),
	col("kind", Text, func(p *Profiled) any { return &p.Kind }),
	col("policy", Text, func(p *Profiled) any { return &p.Policy }),
	col("attempts", Int, func(p *Profiled) any { return &p.Attempts }),
	col("minute", Int, func(p *Profiled) any { return &p.Minute }),
	col("first", Moment, func(p *Profiled) any { return &p.First }),
	col("last", Moment, func(p *Profiled) any { return &p.Last }),
	col("tasks", Int, func(p *Profiled) any { return &p.Tasks }),
	col("clock", Moment, func(p *Profiled) any { return &p.Now }),
}

// Count is the number of tasks of a queue, a kind and a state.
type Count struct {
	Queue     string
	Kind      string
	State     string
	Tasks     int64
	Estimated bool // whether Tasks is an estimate; no column
}

// CountColumns are the columns of a result of [CountTasks].
var CountColumns = Columns[Count]{
	col("queue", Text, func(c *Count) any { return &c.Queue }),
	col("kind", Text, func(c *Count) any { return &c.Kind }),
	col("state", Text, func(c *Count) any { return &c.State }),
	col("tasks", Int, func(c *Count) any { return &c.Tasks }),
}
