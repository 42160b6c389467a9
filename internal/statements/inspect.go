package statements

import "github.com/falldue/falldue/dialect"

// ListParams are the conditions of [List]. Each set field adds a parameter of its name
// in lower case.
type ListParams struct {
	ID, Queue, Kind, State, Key bool
	Part                        bool // the key is one or several parts, and selects the keys with these parts
	Older, Newer                bool // enqueued at least, or less than, so many microseconds ago
	Upto                        bool // no greater IDs
	Phase                       Phase
	Brief                       bool // without payloads, results, metadata and errors
	Newest                      bool // from the greatest ID down: before :after, and no smaller IDs than :upto
	Near                        bool // :upto is not far from :after, so that the order of IDs is the way to find the tasks
}

// Phase narrows a list to tasks in the phases that one condition describes.
type Phase int

// The phases that conditions describe.
const (
	PhaseAny        Phase = iota
	PhaseUnfinished       // waiting or running
	PhaseRunning          // claimed, and the lease lasts
	PhaseScheduled        // never tried, and not due yet
	PhaseSnoozed          // snoozed, and not due yet
)

func (p Phase) condition() string {
	switch p {
	case PhaseUnfinished:
		return " and state in ('blocked', 'open', 'snoozed')"
	case PhaseRunning:
		return " and state in ('open', 'snoozed') and claimed_by <> '' and updated_at > {now}"
	case PhaseScheduled:
		return " and state = 'open' and attempts = 0 and updated_at > {now}"
	case PhaseSnoozed:
		return " and state = 'snoozed' and updated_at > {now}"
	}
	return ""
}

// List selects tasks in the order of their IDs, up to :limit after the ID
// :after, and returns them as [TaskColumns]. With Newest the order is reversed.
func List(s dialect.Server, tables dialect.Tables, p ListParams) Stmt {
	b := newBuilder(s, tables)
	b.setTask("", p)
	b.setFilter(p)
	return b.stmt(`
select {task} from {tasks}
where {after}{filter}{in state}
order by {by id} limit :limit`)
}

// setTask sets the fragment {task}, the [TaskColumns] of a list.
func (b *builder) setTask(prefix string, p ListParams) {
	exprs := map[string]string{"clock": "{now}", "claimed_by": "coalesce(rtrim(" + prefix + "claimed_by), '')"}
	if p.Brief {
		exprs["last_error"], exprs["payload"], exprs["result"], exprs["metadata"] = "null", "null", "null", "null"
	}
	b.set("task", TaskColumns.list(prefix, exprs))
}

// ListIDs selects the IDs of up to :limit tasks of a queue and a state that [List] picks, in no order,
// so that the index finds them.
func ListIDs(s dialect.Server, tables dialect.Tables, p ListParams) Stmt {
	p.Queue, p.State = true, true
	b := newBuilder(s, tables)
	b.setFilter(p)
	return b.stmt(`
select id from {tasks}
where {after}{filter}{in state} limit :limit`)
}

// LookIDs reads up to :limit tasks of a queue and a state, and of a key or, with Part, of the keys from :key to :key_end,
// in the order of the index. For each it selects its ID if [List] picks the task, or 0.
func LookIDs(s dialect.Server, tables dialect.Tables, p ListParams) Stmt {
	b := newBuilder(s, tables)
	key, begins := p.Key && !p.Part, p.Key && p.Part
	p.Queue, p.State, p.Key, p.Upto = false, false, begins, false
	b.setFilter(p)
	b.set("looked", "queue = :queue and state = :state")
	b.setInState(key)
	switch {
	case key:
		b.set("looked", "queue = :queue and state = :state and task_key = :key")
	case begins && s.Caps.LaneExpression:
		b.set("in state", " and {lane text} >= {text :queue} || ' ' || {text :state} || ' ' || {text :key} and {lane text} < {text :queue} || ' ' || {text :state} || ' ' || {text :key_end}")
	case begins:
		b.set("looked", "queue = :queue and state = :state and task_key >= :key and task_key < :key_end")
	}
	b.set("compared", p.compared())
	// Without an order, PostgreSQL might read the table until it has enough tasks.
	b.set("by lane", "{lane columns}, updated_at")
	if s.Caps.LaneExpression {
		b.set("by lane", "{lane text}, updated_at")
	}
	return b.stmt(`
select case when {after}{filter} then id else 0 end from (select id{compared} from {tasks}
where {looked}{in state} order by {by lane} limit :limit) t`)
}

// compared returns the columns that the conditions compare, apart from the id, the queue and the state.
func (p ListParams) compared() (columns string) {
	for _, c := range []struct {
		column string
		is     bool
	}{
		{"kind", p.Kind}, {"task_key", p.Key}, {"created_at", p.Older || p.Newer}, {"state", p.Phase != PhaseAny},
		{"attempts", p.Phase == PhaseScheduled}, {"claimed_by", p.Phase == PhaseRunning}, {"updated_at", p.Phase > PhaseUnfinished},
	} {
		if c.is {
			columns += ", " + c.column
		}
	}
	return columns
}

// ListSome selects the tasks of a batch that [List] picks, in no order. The batch has [IDColumns].
func ListSome(s dialect.Server, tables dialect.Tables, p ListParams, size int) Stmt {
	b := newBuilder(s, tables)
	source := b.withBatch(IDColumns.columns(), size)
	b.setKeys(source, "id")
	b.setTask("t.", p)
	b.setFilter(p)
	if source.byKey() {
		return b.stmt(`
select {task} from {tasks} t where {keys}{filter}`)
	}
	return b.stmt(`
select {task} from {batch} join {tasks} t on {same key}{filter}`)
}

// setFilter sets the fragments {after}, {filter} and {in state}, the conditions of a list, and
// {by id}, its order.
func (b *builder) setFilter(p ListParams) {
	upto := " and id <= :upto"
	b.set("after", "id > :after")
	b.set("by id", "id")
	if p.Newest {
		upto = " and id >= :upto"
		b.set("after", "id < :after")
		b.set("by id", "id desc")
	}
	b.set("in state", "")
	if p.Queue && p.State && !p.Near {
		b.setInState(p.Key && !p.Part)
	}
	filter, value := "", ""
	if p.Near && b.server.Caps.DynamicTypes { // so that SQLite does not use the index of lanes
		value = "+"
	}
	for _, f := range []struct {
		set       bool
		condition string
	}{
		{p.ID, " and id = :id"}, {p.Queue, " and " + value + "queue = :queue"}, {p.Kind, " and kind = :kind"}, {p.State, " and state = :state"}, {p.Key, keyCondition(p.Part)},
		{p.Older, " and created_at <= {shift {now}, -({int :older})}"}, {p.Newer, " and created_at > {shift {now}, -({int :newer})}"},
		{p.Upto, upto}, {true, p.Phase.condition()},
	} {
		if f.set {
			filter += f.condition
		}
	}
	b.set("filter", filter)
}

// keyCondition is true for the tasks with a :key, or that have its parts: at the beginning of their
// keys, in the middle, or at the end.
func keyCondition(parts bool) string {
	if !parts {
		return " and task_key = :key"
	}
	begins := "substr(task_key, 1, length({text :part_first})) = {text :part_first}"
	has := "replace(task_key, {text :part_within}, '') <> task_key"
	ends := "substr(task_key, length(task_key) - length({text :part_last}) + 1) = {text :part_last}"
	return " and (task_key = :key or " + begins + " or " + has + " or " + ends + ")"
}

// Attempts selects the recorded attempts of a task, oldest first, and returns
// them as [AttemptColumns]. Parameters: id.
func Attempts(s dialect.Server, tables dialect.Tables) Stmt {
	b := newBuilder(s, tables)
	b.set("attempt", AttemptColumns.list("", nil))
	return b.stmt(`
select {attempt} from {attempts}
where task_id = :id
order by fence`)
}

// AttemptsOf selects the recorded attempts of each task of a batch of size tasks as [AttemptColumns], in no order, and
// the task's place in the batch. The batch has [IDColumns].
func AttemptsOf(s dialect.Server, tables dialect.Tables, size int) Stmt {
	b := newBuilder(s, tables)
	b.set("attempt", AttemptColumns.list("", nil))
	return b.united(IDColumns.columns(), size, `select {attempt}, {place} from {attempts} where task_id = {of task_id}`)
}

// CountTasks counts tasks by queue, kind and state. It returns [CountColumns].
func CountTasks(s dialect.Server, tables dialect.Tables) Stmt {
	b := newBuilder(s, tables)
	b.set("counted", CountColumns.list("", map[string]string{"tasks": "count(*)"}))
	return b.stmt(`
select {counted} from {tasks}
group by queue, kind, state order by queue, kind, state`)
}

// Drop deletes finished tasks. The batch has [IDColumns].
func Drop(s dialect.Server, tables dialect.Tables, size int) Stmt {
	b := newBuilder(s, tables)
	source := b.withBatch(IDColumns.columns(), size)
	b.setKeys(source, "id")
	b.set("table", "{tasks}")
	return b.stmt(source.delete() + " and t.state in ('done', 'dead', 'cancelled')")
}

// CountTables counts the tables called :name. It is for servers with
// Caps.AmbiguousMissingTable.
func CountTables(s dialect.Server) Stmt {
	return newBuilder(s, dialect.Tables{}).stmt(`
select count(*) from sqlite_schema where type = 'table' and name = :name`)
}
