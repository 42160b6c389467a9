package statements

import (
	"slices"
	"strconv"
	"strings"

	"github.com/falldue/falldue/dialect"
)

// A permit is the right to run one task under a limit. The row of a permit names the claim that
// has it. A limit of n has n permits. Claims do not give permits back: a permit is free when the
// claim that it names no longer lives. If the claim of a running task is ended from outside, the
// claim's permits are kept until the task's handler has ended.
//
// A permit never names a claim that was not made. If an attempt to claim does not get all permits,
// it restores the rows of the permits that it got.

// Permit is a permit as [Permits] returns it.
type Permit struct {
	ID       int64
	Name     string // of the limit
	N        int    // its number among the limit's permits, from 0
	Key             // the claim that has it, or had it last
	Token    int64  // a random number of the claim that took it last; below 0 if it is kept
	Until    int64  // until when it is taken: of a rate, or if it is kept
	Now      int64  // by the database's clock
	State    string // of the task, "" if there is none or the claim is not its last one
	Attempts int    // of the task
	Live     int    // 1 while the claim lives: its lease lasts, and it is not settled

	// Where the task waits. Only claims of sequences use these fields.
	Queue    string
	Priority int
	Policy   string
	Anchor   int64
}

// Begun reports whether the claim that a permit names has ended and its task waits for another one.
// A task that is retried begins anew.
func (p *Permit) Begun() bool {
	return p.State == StateSnoozed || p.State == StateOpen && p.Attempts > 0
}

// Kept reports whether a permit is kept, see [KeepPermit]. The time of another permit may be in the future, too: the
// database's clock may have stepped back.
func (p *Permit) Kept() bool { return p.Token < 0 && p.Until > p.Now }

// IsIn reports whether the task that a permit names may wait in a lane.
func (p *Permit) IsIn(at Lane) bool { return p.State == at.State && p.Attempts == at.Attempts }

// PermitColumns are the columns of a result of [Permits].
var PermitColumns = join(
	Columns[Permit]{
		col("id", Int, func(p *Permit) any { return &p.ID }),
		col("name", Text, func(p *Permit) any { return &p.Name }),
		col("n", Int, func(p *Permit) any { return &p.N }),
	},
	within(FenceColumns, func(p *Permit) *Key { return &p.Key }),
	Columns[Permit]{
		col("token", Int, func(p *Permit) any { return &p.Token }),
		col("until", Moment, func(p *Permit) any { return &p.Until }),
		col("clock", Moment, func(p *Permit) any { return &p.Now }),
		col("state", Text, func(p *Permit) any { return &p.State }),
		col("attempts", Int, func(p *Permit) any { return &p.Attempts }),
		col("live", Int, func(p *Permit) any { return &p.Live }),
		col("queue", Text, func(p *Permit) any { return &p.Queue }),
		col("priority", Int, func(p *Permit) any { return &p.Priority }),
		col("policy", Text, func(p *Permit) any { return &p.Policy }),
		col("anchor", Moment, func(p *Permit) any { return &p.Anchor }),
	})

// LimitColumns are the columns of a batch of names of limits.
var LimitColumns = Columns[string]{col("name", Text, func(name *string) any { return name })}

// Permits selects the permits of limits as [PermitColumns]. It locks nothing: only
// [TakePermits] makes sure that the permits are free. The batch has [LimitColumns].
func Permits(s dialect.Server, tables dialect.Tables, size int) Stmt {
	b := newBuilder(s, tables)
	source := b.withBatch(LimitColumns.columns(), size)
	b.setFoundPermits()
	b.setAnyNumber()
	b.setKeys(source, "name")
	if source.byKey() {
		return b.stmt(`
select {found} from {permits} t left join {tasks} k on k.id = t.task_id where {keys}`)
	}
	return b.stmt(`
select {found} from {batch} {all numbers}
cross join lateral (select * from {permits} where name = s.name and {any number} offset 0) t
{their tasks}`)
}

// setAnyNumber sets the join {all numbers} and the condition {any number} on the permits of a limit, which all of them
// meet. From the name, PostgreSQL without statistics expects a two-hundredth of the table for each limit, and
// would compile the statement in each run. From two bounds that it does not know, it expects few permits.
//
// OFFSET hides the bounds, and keeps the planner from joining whole tables, as it does with old statistics.
func (b *builder) setAnyNumber() {
	b.set("all numbers", "cross join (select 0 as first, 2147483647 as last offset 0) numbers")
	b.set("any number", "n between numbers.first and numbers.last")
}

// setFoundPermits sets "found" to the columns of permits t whose tasks are k, and "their tasks" to the join of k.
func (b *builder) setFoundPermits() {
	b.set("their tasks", "left join lateral (select state, attempts, fence, claimed_by, updated_at, queue, priority, policy from {tasks} where id = t.task_id offset 0) k on true")
	b.set("found", PermitColumns.list("t.", map[string]string{
		"task_id": "t.task_id", "task_fence": "t.fence", "until": "t.taken_until", "clock": "{now}", "state": "case when k.fence = t.fence then k.state else '' end", "attempts": "coalesce(k.attempts, 0)",
		"queue": "coalesce(k.queue, '')", "priority": "coalesce(k.priority, 0)", "policy": "coalesce(k.policy, '')", "anchor": "coalesce(k.updated_at, t.taken_until)",
		"live": "case when k.fence = t.fence and k.claimed_by <> '' and k.updated_at > {now} then 1 else 0 end",
	}))
}

// PermitRange selects up to :limit permits of limits with names from :from to before :before as [PermitColumns], in
// the order of their names. Parameters: from, before, limit.
// The lower bound is a comparison of rows on servers with Caps.Lateral. From two plain bounds, PostgreSQL without
// statistics expects a few rows, and sorts all that it finds.
func PermitRange(s dialect.Server, tables dialect.Tables) Stmt {
	b := newBuilder(s, tables)
	b.setFoundPermits()
	if !s.Caps.Lateral {
		return b.stmt(`
select {found} from {permits} t left join {tasks} k on k.id = t.task_id
where t.name >= :from and t.name < :before order by t.name limit :limit`)
	}
	return b.stmt(`
select {found} from (select * from {permits} where (name, n) >= (:from, 0) and name < :before order by name, n limit :limit) t
{their tasks}`)
}

// NewPermit is a permit to make.
type NewPermit struct {
	Name string
	N    int
}

// NewPermitColumns are the columns of the batch of [MakePermits].
var NewPermitColumns = Columns[NewPermit]{
	col("name", Text, func(p *NewPermit) any { return &p.Name }),
	col("n", Int, func(p *NewPermit) any { return &p.N }),
}

// MakePermits stores free permits, unless they exist. The batch has
// [NewPermitColumns], on engines without arrays exactly size rows.
func MakePermits(s dialect.Server, tables dialect.Tables, size int) Stmt {
	b := newBuilder(s, tables)
	columns := NewPermitColumns.columns()
	source := b.withBatch(columns, size)
	b.setInsertNew()
	b.set("rows", func() string { return "values " + b.values(columns, commas) })
	if !source.inValues() {
		b.set("rows", "select s.name, s.n from {batch}\nwhere true")
	}
	return b.stmt(`
{insert} {permits} (name, n)
{rows}{unless there}`)
}

// Grant is a permit for a claim.
type Grant struct {
	Permit int64
	Key          // the claim that will have the permit
	Was    int64 // the permit's token when it was free
	Wait   int64 // of a rate: for how many microseconds it is taken
}

// GrantColumns are the columns of the batches of [TakePermits] and [ReturnPermits].
var GrantColumns = join(
	Columns[Grant]{col("permit", Int, func(g *Grant) any { return &g.Permit })},
	within(FenceColumns, func(g *Grant) *Key { return &g.Key }),
	Columns[Grant]{
		col("was", Int, func(g *Grant) any { return &g.Was }),
		col("wait", Int, func(g *Grant) any { return &g.Wait }),
	})

// TakePermits gives permits to claims. It is a compare-and-set on the token: if two claims try to
// take one permit, one of the claims gets it. Comparing the claim that a permit names would not do:
// several permits may name one claim, if one of the permits was taken in vain.
//
// On servers with Caps.UpdateReturning TakePermits returns the IDs of the permits that it matched.
// The batch has [GrantColumns]. Parameters: token, a new random number.
func TakePermits(s dialect.Server, tables dialect.Tables, size int) Stmt {
	b := newBuilder(s, tables)
	b.setReturning()
	source := b.setGrants(size, "t.id = s.permit and t.token = s.was", "{int :token}", "{shift {greatest t.taken_until, {now}}, s.wait}")
	if source != (arrays{}) {
		return b.updatePermits()
	}
	// Rows that another claim has just taken are skipped, and not waited for.
	b.set("returning", "\nreturning t.id")
	return b.stmt(`
with s as materialized (select s.* from {batch} join {permits} t on {same}
for update of t skip locked)
update {permits} t set {set}
from s where {same}{returning}`)
}

// setGrants sets the fragments of a statement that changes the permits of a batch of
// [GrantColumns]: the condition for these permits, and their new token and time.
func (b *builder) setGrants(size int, same, token, until string) rowSource {
	columns := GrantColumns.columns()
	source := b.withBatch(columns, size)
	b.set("wide batch", func() string { return unions{}.wide(b, "s", columns) })
	b.set("hint", "")
	if b.server.Caps.JoinHints {
		b.set("hint", "/*+ inl_join(t) */ ")
	}
	b.set("same", same)
	of := ""
	if source == (unions{}) {
		of = "t."
	}
	b.set("set", of+"task_id = s.task_id, "+of+"fence = s.task_fence, "+of+"token = "+token+", "+of+"taken_until = "+until)
	return source
}

// updatePermits changes permits with the fragments of [builder.setGrants].
func (b *builder) updatePermits() Stmt {
	switch sourceOf(b.server).(type) {
	case arrays:
		return b.stmt(`
update {permits} t set {set}
from {batch} where {same}`)
	case unions:
		return b.stmt(`
update {hint}{wide batch} straight_join {permits} t on {same}
set {set}`)
	}
	return b.stmt(`
update {permits} as t set {set}
from (select * from {batch} limit -1) as s
where {same}{returning}`)
}

// TakenPermits selects the IDs of those permits of a batch that [TakePermits] has taken.
// The batch has the first column of [GrantColumns]. Parameters: token.
func TakenPermits(s dialect.Server, tables dialect.Tables, size int) Stmt {
	b := newBuilder(s, tables)
	source := b.withBatch(GrantColumns[:1].columns(), size)
	b.setKeys(source, "id")
	if source.byKey() {
		return b.stmt(`
select t.id from {permits} t where {keys} and t.token = :token`)
	}
	return b.stmt(`
select t.id from {batch} join {permits} t on {same key} and t.token = {int :token}`)
}

// ExtendPermits lets permits of a rate that a claim has taken stay taken for :wait microseconds
// from now, or longer. A claim takes its tasks after its permits, and the time counts from the
// tasks on. The batch has the first column of [GrantColumns]. Parameters: token, wait.
func ExtendPermits(s dialect.Server, tables dialect.Tables, size int) Stmt {
	b := newBuilder(s, tables)
	source := b.withBatch(GrantColumns[:1].columns(), size)
	b.setKeys(source, "id")
	b.set("set", "taken_until = {greatest t.taken_until, {shift {now}, {int :wait}}}")
	if source.byKey() {
		return b.stmt(`
update {permits} as t set {set} where {keys} and t.token = :token`)
	}
	return b.stmt(`
update {permits} as t set {set} from {batch} where {same key} and t.token = {int :token}`)
}

// ReturnPermits restores the permits that a claim has taken in vain. Permits of rates are taken for
// wait microseconds less. The batch has [GrantColumns], with the claims and the tokens to restore.
// Parameters: token, which the permits have.
func ReturnPermits(s dialect.Server, tables dialect.Tables, size int) Stmt {
	b := newBuilder(s, tables)
	b.set("returning", "")
	b.setGrants(size, "t.id = s.permit and t.token = {int :token}", "s.was", "{shift t.taken_until, -s.wait}")
	return b.updatePermits()
}

// TakenPermit is a permit of a claim.
type TakenPermit struct {
	ID int64
	Key
}

// TakenPermitColumns are the columns of a result of [PermitsOf].
var TakenPermitColumns = join(
	Columns[TakenPermit]{col("id", Int, func(p *TakenPermit) any { return &p.ID })},
	within(FenceColumns, func(p *TakenPermit) *Key { return &p.Key }))

// PermitsOf selects the permits of limits that name tasks, as [TakenPermitColumns]. It locks nothing.
// The batch has [LimitColumns].
func PermitsOf(s dialect.Server, tables dialect.Tables, size int) Stmt {
	b := newBuilder(s, tables)
	source := b.withBatch(LimitColumns.columns(), size)
	b.set("found", TakenPermitColumns.list("t.", map[string]string{"task_id": "t.task_id", "task_fence": "t.fence"}))
	b.setKeys(source, "name")
	if source.byKey() {
		return b.stmt(`
select {found} from {permits} t where {keys} and t.task_id <> 0`)
	}
	b.setAnyNumber()
	return b.stmt(`
select {found} from {batch} {all numbers}
cross join lateral (select id, task_id, fence from {permits} where name = s.name and {any number} and task_id <> 0 offset 0) t`)
}

// KeepPermit lets a permit stay taken for :wait microseconds from now, although the claim
// that it names has ended. Parameters: permit, id, fence, token, a new random number below 0, wait.
func KeepPermit(s dialect.Server, tables dialect.Tables) Stmt {
	return newBuilder(s, tables).stmt(`
update {permits} set token = {int :token}, taken_until = {shift {now}, {int :wait}}
where id = {int :permit} and task_id = {int :id} and fence = {int :fence} and token >= 0`)
}

// FreePermit frees a permit that [KeepPermit] has kept. Parameters: permit, id, fence.
func FreePermit(s dialect.Server, tables dialect.Tables) Stmt {
	return newBuilder(s, tables).stmt(`
update {permits} set taken_until = {now}
where id = {int :permit} and task_id = {int :id} and fence = {int :fence} and token < 0`)
}

// CarryPermit lets a permit name the next fence of the task that it names. Parameters: permit, id, fence, next, token, a
// new random number.
func CarryPermit(s dialect.Server, tables dialect.Tables) Stmt {
	return newBuilder(s, tables).stmt(`
update {permits} set fence = {int :next}, token = {int :token}
where id = {int :permit} and task_id = {int :id} and fence = {int :fence}`)
}

// PagedPermit is a permit as [PermitPage] returns it.
type PagedPermit struct {
	ID   int64
	Free int // 1 if it has been free for long
}

// PagedPermitColumns are the columns of a result of [PermitPage].
var PagedPermitColumns = Columns[PagedPermit]{
	col("id", Int, func(p *PagedPermit) any { return &p.ID }),
	col("free", Int, func(p *PagedPermit) any { return &p.Free }),
}

// PermitPage selects up to :limit permits with IDs above :after as [PagedPermitColumns], in
// the order of their IDs. A permit has been free for long if it was taken, or free again by
// its rate, :keep microseconds ago, and its task is done, cancelled or gone. A dead task may
// halt a sequence. Parameters: after, keep, limit.
func PermitPage(s dialect.Server, tables dialect.Tables) Stmt {
	b := newBuilder(s, tables)
	b.set("found", PagedPermitColumns.list("t.", map[string]string{
		"free": "case when t.taken_until <= {shift {now}, -({int :keep})} and coalesce(k.state, 'done') in ('done', 'cancelled') then 1 else 0 end",
	}))
	return b.stmt(`
select {found} from {permits} t left join {tasks} k on k.id = t.task_id
where t.id > {int :after} order by t.id limit :limit`)
}

// DropPermits deletes permits unless they were taken in the last :keep microseconds. The
// batch has [IDColumns]. Parameters: keep.
func DropPermits(s dialect.Server, tables dialect.Tables, size int) Stmt {
	b := newBuilder(s, tables)
	source := b.withBatch(IDColumns.columns(), size)
	b.setKeys(source, "id")
	b.set("table", "{permits}")
	return b.stmt(source.delete() + " and t.taken_until <= {shift {now}, -({int :keep})}")
}

// FindDue selects the first due tasks of lanes, up to the room of each, locked, as
// [ClaimedColumns]. [Take] claims them in the same transaction. It is for servers where
// [ClaimsAtOnce], and for those with Caps.JSONLateral, where all lanes of a batch have one room.
// Otherwise claims use [UniteLanes], or else [ClaimLane] for each lane.
// The batch has [LaneColumns]. Parameters: queue, and room with Caps.JSONLateral.
func FindDue(s dialect.Server, p ClaimParams) Stmt {
	b := newBuilder(s, p.Tables)
	b.set("lanes", func() string { return arrays{}.numbered(b, LaneColumns.columns()) })
	b.setInLane(func(c column) string { return "l." + c.Name })
	b.set("delay", func() string { return b.delays("l.", p.Formulas) })
	b.set("found", ClaimedColumns[1:].list("", foundExprs("")))
	b.setSince()
	if s.Caps.JSONLateral {
		// The subquery returns only keys, since MySQL stores its result for each lane. It has no upper bound,
		// which would be a filter: for a lane with too few due tasks, MySQL would read all the others.
		exprs := foundExprs("t.")
		exprs["place"] = "l.place"
		b.set("lanes", func() string { return b.jsonTable("l", LaneColumns.columns()) })
		b.set("found", ClaimedColumns.list("t.", exprs))
		b.set("lane index", verbatim(s.Quote(p.Tables.Prefix+"lane")))
		b.set("order", "queue, "+list(laneColumns.columns(), ", ", func(c column) string { return c.Name })+", updated_at")
		return b.stmt(`
select {found} from {lanes}
straight_join lateral (select id from {tasks} force index ({lane index}) where {in lane} and {since l.since}
	order by {order} limit :room{for update}) d
straight_join {tasks} t on t.id = d.id and t.updated_at <= {shift {now}, -({delay})} for update of t skip locked`)
	}
	return b.stmt(`
select l.place, t.* from {lanes}
cross join lateral (select {found} from {tasks}
where {in lane} and {since l.since} and updated_at <= {shift {now}, -({delay})}
order by updated_at limit l.room{for update}) t`)
}

// UnitesLanes reports whether [UniteLanes] is for a server.
func UnitesLanes(s dialect.Server) bool { return s.Caps.Rows == dialect.Unions }

// UniteLanes is [FindDue] for lanes without a delay, on servers with Caps.Rows Unions: a
// SELECT for each lane. Each of them returns only keys, since the server prepares every column
// of every SELECT anew in each execution, which takes longer than to find the tasks.
func UniteLanes(s dialect.Server, tables dialect.Tables, size int) Stmt {
	b := newBuilder(s, tables)
	b.batch, b.size = LaneColumns.columns(), size
	cell := func(row int, name string) string {
		return b.cell(row, slices.IndexFunc(b.batch, func(c column) bool { return c.Name == name }))
	}
	lanes := make([]string, size)
	for i := range lanes {
		b.setInLane(func(c column) string { return cell(i, c.Name) })
		lanes[i] = b.expand("(select " + strconv.Itoa(i+1) + " as place, id from {tasks}\nwhere {in lane} and updated_at >= {moment " + cell(i, "since") + "} and updated_at <= {now}\norder by updated_at limit " + cell(i, "room") + "{for update})")
	}
	exprs := foundExprs("t.")
	exprs["place"] = "l.place"
	b.set("found", ClaimedColumns.list("t.", exprs))
	b.set("lanes", strings.Join(lanes, "\nunion all "))
	return b.stmt("\nselect {found} from ({lanes}) as l\nstraight_join {tasks} t on t.id = l.id{for update}")
}
