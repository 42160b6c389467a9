package statements

import "github.com/falldue/falldue/dialect"

// Every statement here ends or extends claims that :worker holds, by ID and
// fence. A claim that was lost in the meantime matches nothing, so that no
// worker settles a task that another one runs. On servers with Caps.UpdateReturning
// each statement returns the IDs of the tasks that it matched.

// owner is the worker that must have the claims that a statement changes.
type owner bool

const (
	anyClaim   owner = false
	thisWorker owner = true
)

// setOwned sets the fragment {and owned}, the condition that t is a claim of
// :worker.
//
// Where the server keeps statistics of values the condition must not be an
// equality: these statistics date from when nothing was claimed, so that the
// server would expect few rows of the worker, look for them by reading the whole
// table, and compare each of them with the batch.
func (b *builder) setOwned() {
	b.set("and owned", " and t.claimed_by = :worker{still}")
	if b.server.Caps.ValueStatistics {
		b.set("and owned", " and coalesce(t.claimed_by = :worker, false){still}")
	}
}

// updateRows changes the tasks of a batch of claims. The first columns of the batch
// are [FenceColumns].
func (b *builder) updateRows(columns []column, size int, set string, whose owner) Stmt {
	b.set("and owned", "")
	b.set("returning", "")
	if whose == thisWorker {
		b.setOwned()
		b.setReturning()
	}
	return b.update(columns, size, set)
}

// update changes the tasks of a batch. The first columns of the batch are [FenceColumns].
func (b *builder) update(columns []column, size int, set string) Stmt {
	source := b.withBatch(columns, size)
	b.setKeys(source, "id", "fence")
	b.set("wide batch", func() string { return unions{}.wide(b, "s", columns) })
	b.set("batch of ids", func() string { return source.from(b, "s", columns[:1]) })
	b.set("hint", "")
	if b.server.Caps.JoinHints {
		b.set("hint", "/*+ inl_join(t) */ ")
	}
	b.set("set", set)
	if source.byKey() && len(columns) == len(FenceColumns) {
		return b.stmt(`
update {tasks} as t set {set}
where {keys}{and owned}{returning}`)
	}
	return b.stmt(source.update() + "{returning}")
}

// setReturning sets the fragment {returning}, with which an UPDATE or DELETE
// returns the tasks that it matched.
func (b *builder) setReturning() {
	b.set("returning", "")
	if b.server.Caps.UpdateReturning {
		b.set("returning", "\nreturning id")
	}
}

// Delete ends tasks that are done and need not be kept. The batch has
// [FenceColumns]. Parameters: worker.
func Delete(s dialect.Server, tables dialect.Tables, size int) Stmt {
	b := newBuilder(s, tables)
	source := b.withBatch(FenceColumns.columns(), size)
	b.setKeys(source, "id", "fence")
	b.setOwned()
	b.setReturning()
	b.set("table", "{tasks}")
	return b.stmt(source.delete() + "{and owned}{returning}")
}

// Settle ends claims in any way. The batch has [SettleColumns]. Parameters:
// worker.
func Settle(s dialect.Server, tables dialect.Tables, size int) Stmt {
	return newBuilder(s, tables).updateRows(SettleColumns.columns(), size,
		`state = s.to_state, attempts = t.attempts + s.more, claimed_by = '', updated_at = {shift {now}, s.wait},
		last_error = coalesce(s.failure, t.last_error), result = {json s.answer}`, thisWorker)
}

// SettleAlike is [Settle] for claims that all end alike. The batch has [FenceColumns].
// Parameters: worker, and the parameters of [SetSettlement].
func SettleAlike(s dialect.Server, tables dialect.Tables, size int) Stmt {
	return newBuilder(s, tables).updateRows(FenceColumns.columns(), size,
		`state = {text :to_state}, attempts = t.attempts + {int :more}, claimed_by = '', updated_at = {shift {now}, {int :wait}},
		last_error = coalesce({text :failure}, t.last_error), result = {json {text :answer}}`, thisWorker)
}

// SetSettlement sets the parameters of [SettleAlike] from the end of a claim.
func SetSettlement(values Values, t *Settlement) { SettleColumns[len(FenceColumns):].Set(values, t) }

// Extend moves the end of leases to :lease microseconds from now. The batch
// has [FenceColumns]. Parameters: worker, lease.
func Extend(s dialect.Server, tables dialect.Tables, size int) Stmt {
	return newBuilder(s, tables).updateRows(FenceColumns.columns(), size, extension, thisWorker)
}

const (
	extension = `updated_at = {shift {now}, {int :lease}}`
	// lasts is the condition that the lease of a claim has not expired.
	lasts = " and t.updated_at > {now}"
)

// ExtendLive is [Extend] for claims under a limit: an expired lease stays expired, since
// other claims may have taken the claim's permit.
func ExtendLive(s dialect.Server, tables dialect.Tables, size int) Stmt {
	b := newBuilder(s, tables)
	b.set("still", lasts)
	return b.updateRows(FenceColumns.columns(), size, extension, thisWorker)
}

// Owned selects the IDs of those claims of a batch that :worker still holds. If
// lock is set, Owned locks their rows, and leaves out rows that others have locked,
// both where the engine can. The batch has [FenceColumns]. Parameters: worker.
func Owned(s dialect.Server, tables dialect.Tables, size int, lock bool) Stmt {
	return newBuilder(s, tables).owned(size, lock)
}

// Live selects the IDs of those claims of a batch that :worker still holds and whose leases have
// not expired. The batch has [FenceColumns]. Parameters: worker.
func Live(s dialect.Server, tables dialect.Tables, size int) Stmt {
	b := newBuilder(s, tables)
	b.set("still", lasts)
	return b.owned(size, false)
}

func (b *builder) owned(size int, lock bool) Stmt {
	source := b.withBatch(FenceColumns.columns(), size)
	b.setKeys(source, "id", "fence")
	b.setOwned()
	if !lock {
		b.set("for update", "")
	}
	if source.byKey() {
		return b.stmt(`
select t.id from {tasks} t where {keys}{and owned}{for update}`)
	}
	return b.stmt(`
select t.id from {batch} join {tasks} t on {same key}{and owned}{for update}`)
}

// Record stores failed and lost attempts. The batch has [RecordColumns], on
// engines without arrays exactly size rows. An attempt that is recorded already
// stays as it is.
func Record(s dialect.Server, tables dialect.Tables, size int) Stmt {
	b := newBuilder(s, tables)
	columns := RecordColumns.columns()
	source := b.withBatch(columns, size)
	b.setInsertNew()
	b.set("columns", list(columns, ", ", func(c column) string { return c.Name })+", finished_at")
	if source.inValues() {
		b.set("rows", func() string {
			return b.values(columns, func(cells []string) string { return commas(append(cells, b.hole("now"))) })
		})
		return b.stmt(`
{insert} {attempts} ({columns})
values {rows}{unless there}`)
	}
	return b.stmt(`
{insert} {attempts} ({columns}) select s.*, {now} from {batch}
where true{unless there}`)
}

// setInsertNew sets the fragments {insert} and {unless there} around rows that are
// stored unless they are there.
func (b *builder) setInsertNew() {
	switch b.server.Caps.Upsert {
	case dialect.OnConflict:
		b.set("insert", "insert into")
		b.set("unless there", " on conflict do nothing")
	case dialect.OnDuplicateKey:
		b.set("insert", "insert ignore into")
		b.set("unless there", "")
	}
}

// Forget drops the recorded attempts of tasks. The batch has [IDColumns].
func Forget(s dialect.Server, tables dialect.Tables, size int) Stmt {
	b := newBuilder(s, tables)
	source := b.withBatch(IDColumns.columns(), size)
	b.setKeys(source, "task_id")
	b.set("table", "{attempts}")
	return b.stmt(source.delete())
}

// Middle selects the recorded attempts of tasks other than the first :first and the last :last of each task, as
// [FenceColumns]. It reads no more of a task's records than :first and :last, and the ones that it returns. The batch has
// [IDColumns]. Parameters: first, last.
func Middle(s dialect.Server, tables dialect.Tables, size int) Stmt {
	b := newBuilder(s, tables)
	b.withBatch(IDColumns.columns(), size)
	return b.stmt(`
select t.task_id, t.fence from {batch} join {attempts} t on t.task_id = s.task_id
where t.fence >= (select a.fence from {attempts} a where a.task_id = s.task_id order by a.fence limit 1 offset :first)
and t.fence <= (select a.fence from {attempts} a where a.task_id = s.task_id order by a.fence desc limit 1 offset :last)`)
}

// ForgetMiddle drops recorded attempts. The batch has [FenceColumns].
func ForgetMiddle(s dialect.Server, tables dialect.Tables, size int) Stmt {
	b := newBuilder(s, tables)
	source := b.withBatch(FenceColumns.columns(), size)
	b.setKeys(source, "task_id", "fence")
	b.set("table", "{attempts}")
	return b.stmt(source.delete())
}
