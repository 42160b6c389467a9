package statements

import "github.com/falldue/falldue/dialect"

// A unique key is a hash of the values that no two tasks may have in common. The row of a key in
// {uniques} names the task that holds the key, or held it last. Whether that task still holds the key
// is decided only when another task needs the key: nothing is written when a task runs or ends.

// HashColumns are the columns of a batch of unique keys.
var HashColumns = Columns[string]{col("hash", Text, func(hash *string) any { return hash })}

// Holder is a unique key and the task that has it, or had it last.
type Holder struct {
	UniqueKey
	Until      int64 // the end of the time for which the key was taken
	Now        int64 // by the database's clock
	Fence      int64 // of the task
	Unfinished int   // 1 if the task is not finished
	Waiting    int   // 1 if it is not finished and no worker has claimed it
}

// UniqueKey is a version of the row of a unique key.
type UniqueKey struct {
	Hash   string
	Token  int64 // a random number, new each time a task takes the key; 0 for a key without a row
	TaskID int64 // of the holder
}

// UniqueKeyColumns are the columns of a result of [LockKeys].
var UniqueKeyColumns = Columns[UniqueKey]{
	col("hash", Text, func(k *UniqueKey) any { return &k.Hash }),
	col("token", Int, func(k *UniqueKey) any { return &k.Token }),
	col("task_id", Int, func(k *UniqueKey) any { return &k.TaskID }),
}

// DroppedKeyColumns are the columns of the batch of [DropKeys].
var DroppedKeyColumns = UniqueKeyColumns[:2]

// StoredColumns are the columns of a result of [StoreUnique]: the first and the last.
var StoredColumns = Columns[UniqueKey]{UniqueKeyColumns[2], UniqueKeyColumns[0]}

// HolderColumns are the columns of a result of [Holders].
var HolderColumns = join(
	within(UniqueKeyColumns, func(h *Holder) *UniqueKey { return &h.UniqueKey }),
	Columns[Holder]{
		col("until", Moment, func(h *Holder) any { return &h.Until }),
		col("clock", Moment, func(h *Holder) any { return &h.Now }),
		col("task_fence", Int, func(h *Holder) any { return &h.Fence }),
		col("unfinished", Int, func(h *Holder) any { return &h.Unfinished }),
		col("waiting", Int, func(h *Holder) any { return &h.Waiting }),
	})

const (
	isUnfinished = "k.state not in ('done', 'dead', 'cancelled')"
	isWaiting    = isUnfinished + " and k.claimed_by = ''"
)

// Holders selects the holders of unique keys as [HolderColumns]. It locks nothing: only
// [TakeKeys] makes sure that the keys are free. The batch has [HashColumns].
func Holders(s dialect.Server, tables dialect.Tables, size int) Stmt {
	b := newBuilder(s, tables)
	source := b.withBatch(HashColumns.columns(), size)
	b.set("found", HolderColumns.list("t.", map[string]string{
		"until": "t.held_until", "clock": "{now}", "task_fence": "coalesce(k.fence, 0)",
		"unfinished": "case when " + isUnfinished + " then 1 else 0 end",
		"waiting":    "case when " + isWaiting + " then 1 else 0 end",
	}))
	b.setKeys(source, "hash")
	if source.byKey() {
		return b.stmt(`
select {found} from {uniques} t left join {tasks} k on k.id = t.task_id where {keys}`)
	}
	// OFFSET keeps the planner from joining whole tables, as it does with old statistics.
	return b.stmt(`
select {found} from {batch}
cross join lateral (select * from {uniques} where hash = s.hash offset 0) t
left join lateral (select state, fence, claimed_by from {tasks} where id = t.task_id offset 0) k on true`)
}

// LockKeys selects unique keys as [UniqueKeyColumns] and locks their rows. It reads the committed
// rows, even in a transaction that otherwise reads the rows that were committed when it began.
// The batch has [HashColumns].
func LockKeys(s dialect.Server, tables dialect.Tables, size int) Stmt {
	b := newBuilder(s, tables)
	source := b.withBatch(HashColumns.columns(), size)
	b.setKeys(source, "hash")
	b.set("found", UniqueKeyColumns.list("t.", nil))
	b.set("lock", "")
	if s.Caps.LockRows {
		b.set("lock", "\nfor update")
	}
	if source.byKey() {
		return b.stmt(`
select {found} from {uniques} t where {keys} order by t.hash{lock}`)
	}
	return b.stmt(`
select {found} from {batch} join {uniques} t on {same key} order by t.hash{lock}`)
}

// HoldWaiting selects the IDs of the waiting tasks of a batch. It locks their rows, so that no
// worker claims them before the transaction ends. The batch has [IDColumns].
func HoldWaiting(s dialect.Server, tables dialect.Tables, size int) Stmt {
	b := newBuilder(s, tables)
	source := b.withBatch(IDColumns.columns(), size)
	b.setKeys(source, "id")
	b.set("lock", "")
	if s.Caps.LockRows {
		b.set("lock", s.Caps.SharedLock)
	}
	if source.byKey() {
		return b.stmt(`
select t.id from {tasks} t where {keys} and t.state in ('open', 'snoozed') and t.claimed_by = ''{lock}`)
	}
	return b.stmt(`
select t.id from {batch} join {tasks} t on {same key} and t.state in ('open', 'snoozed') and t.claimed_by = ''{lock}`)
}

// TakenKey is a unique key to take.
type TakenKey struct {
	Hash   string
	TaskID int64 // the new holder
	Was    int64 // the token when no task held the key
	Wait   int64 // the microseconds for which the key is taken even if the holder ends before
}

// TakenKeyColumns are the columns of the batch of [TakeKeys].
var TakenKeyColumns = Columns[TakenKey]{
	col("hash", Text, func(k *TakenKey) any { return &k.Hash }),
	col("task_id", Int, func(k *TakenKey) any { return &k.TaskID }),
	col("was", Int, func(k *TakenKey) any { return &k.Was }),
	col("wait", Int, func(k *TakenKey) any { return &k.Wait }),
}

// ReturnsTakenKeys reports whether [TakeKeys] returns the keys that it took. Otherwise
// [KeysOfToken] does.
func ReturnsTakenKeys(s dialect.Server) bool { return s.Caps.Upsert == dialect.OnConflict }

// TakeKeys gives unique keys to tasks. It is a compare-and-set on the token: if two statements try
// to take one key, one of them gets it. The column was is only for the comparison. The batch has
// [TakenKeyColumns], on engines without arrays exactly size rows, and no key twice.
// Parameters: token, a new random number.
func TakeKeys(s dialect.Server, tables dialect.Tables, size int) Stmt {
	b := newBuilder(s, tables)
	columns := TakenKeyColumns.columns()
	source := b.withBatch(columns, size)
	switch s.Caps.Upsert {
	case dialect.OnConflict:
		b.set("if free", ifFree)
	case dialect.OnDuplicateKey: // the token comes last, since each assignment sees those before it
		b.set("if", func(column string) string {
			return column + " = case when token = values(was) then values(" + column + ") else " + column + " end"
		})
		b.set("if free", "\non duplicate key update {if task_id}, {if was}, {if held_until}, {if token}")
	}
	if source.inValues() {
		b.set("rows", func() string {
			return b.values(columns, func(cells []string) string {
				b.set("wait", verbatim(cells[3]))
				return commas([]string{cells[0], cells[1], b.expand(":token"), cells[2], b.expand("{shift {now}, {wait}}")})
			})
		})
		return b.stmt(`
insert into {uniques} (hash, task_id, token, was, held_until)
values {rows}{if free}`)
	}
	return b.stmt(`
insert into {uniques} as u (hash, task_id, token, was, held_until)
select s.hash, s.task_id, {int :token}, s.was, {shift {now}, s.wait} from {batch}
where true{if free}`)
}

// StoresUnique reports whether [StoreUnique] is for a server.
func StoresUnique(s dialect.Server) bool {
	return s.Caps.WritableCTE && s.Caps.Copy && s.Caps.Rows == dialect.Arrays
}

// UniqueEntry is a new task with a unique key to take.
type UniqueEntry struct {
	Entry
	Was  int64 // as in TakenKey
	Wait int64
}

// UniqueEntryColumns returns the columns of the batch of [StoreUnique].
func (p EnqueueParams) UniqueEntryColumns() Columns[UniqueEntry] {
	return join(
		within(p.Columns(), func(e *UniqueEntry) *Entry { return &e.Entry }),
		Columns[UniqueEntry]{
			col("was", Int, func(e *UniqueEntry) any { return &e.Was }),
			col("wait", Int, func(e *UniqueEntry) any { return &e.Wait }),
		})
}

// StoreUnique is [TakeKeys] and [Enqueue] in one: it stores the tasks whose keys it can
// take, and returns their IDs, which ascend in the order of the batch, and their keys.
// It takes IDs from the sequence. The batch has [EnqueueParams.UniqueEntryColumns], and no key twice.
// Parameters: table as in [CopyIDs], token, and channel and notice where it notifies.
func StoreUnique(s dialect.Server, p EnqueueParams) Stmt {
	b := insert(s, p)
	columns := p.UniqueEntryColumns().columns()
	b.withBatch(columns, 0)
	b.setValues(columns, func(c column) any { return "s." + c.Name })
	b.setDocuments("s.")
	b.set("if free", ifFree)
	return b.stmt(`
with s as materialized (select nextval((select pg_get_serial_sequence(:table, 'id')::regclass)) as id, s.* from {batch}),
taken as (insert into {uniques} as u (hash, task_id, token, was, held_until)
	select unique_key, id, {int :token}, was, {shift {now}, wait} from s order by unique_key collate "C"{if free})
insert into {tasks} (id, {columns}) select s.id, {row}
from s join taken on taken.hash = s.unique_key{returning}, unique_key`)
}

const ifFree = `
on conflict (hash) do update
	set task_id = excluded.task_id, token = excluded.token, was = excluded.was, held_until = excluded.held_until
where u.token = excluded.was
returning hash`

// KeysOfToken selects those unique keys of a batch that were taken with a token. The batch
// has [HashColumns]. Parameters: token.
func KeysOfToken(s dialect.Server, tables dialect.Tables, size int) Stmt {
	b := newBuilder(s, tables)
	source := b.withBatch(HashColumns.columns(), size)
	b.setKeys(source, "hash")
	if source.byKey() {
		return b.stmt(`
select t.hash from {uniques} t where {keys} and t.token = :token`)
	}
	return b.stmt(`
select t.hash from {batch} join {uniques} t on {same key} and t.token = {int :token}`)
}

// ReplaceWaiting gives a waiting task another payload, another key and another time to run. At that
// time the task is due without a delay. ReplaceWaiting raises the fence: a claim that has found the
// task before does not get it, and a sequence in which the task had a place continues without the
// task. Parameters: id, fence, at, delay, key, payload, metadata.
func ReplaceWaiting(s dialect.Server, tables dialect.Tables) Stmt {
	return newBuilder(s, tables).stmt(`
update {tasks} as t
set fence = {next fence}, task_key = :key, payload = {json {text :payload}}, metadata = {json {text :metadata}}, updated_at = coalesce({moment {int :at}}, {shift {now}, {int :delay}}),
	state = case when attempts = 0 then state else 'snoozed' end
where id = :id and fence = :fence and state in ('open', 'snoozed') and claimed_by = ''`)
}

// Withdraw deletes tasks that the same transaction has stored. The batch has [IDColumns].
func Withdraw(s dialect.Server, tables dialect.Tables, size int) Stmt {
	b := newBuilder(s, tables)
	source := b.withBatch(IDColumns.columns(), size)
	b.setKeys(source, "id")
	b.set("table", "{tasks}")
	return b.stmt(source.delete())
}

// PagedKey is a unique key as [KeyPage] returns it.
type PagedKey struct {
	UniqueKey
	Free int // 1 if no task has held the key for long
}

// PagedKeyColumns are the columns of a result of [KeyPage].
var PagedKeyColumns = join(
	within(DroppedKeyColumns, func(k *PagedKey) *UniqueKey { return &k.UniqueKey }),
	Columns[PagedKey]{col("free", Int, func(k *PagedKey) any { return &k.Free })})

// KeyPage selects up to :limit unique keys above :after as [PagedKeyColumns], in their
// order. A key is free if it was taken until :keep microseconds ago or before, and its
// holder is finished or gone.
func KeyPage(s dialect.Server, tables dialect.Tables) Stmt {
	b := newBuilder(s, tables)
	b.set("found", PagedKeyColumns.list("t.", map[string]string{
		"free": "case when t.held_until <= {shift {now}, -({int :keep})} and (k.id is null or k.state in ('done', 'dead', 'cancelled')) then 1 else 0 end",
	}))
	return b.stmt(`
select {found} from {uniques} t left join {tasks} k on k.id = t.task_id
where t.hash > {text :after} order by t.hash limit :limit`)
}

// ReleasedKeyColumns are the columns of the batch of [ReleaseKeys].
var ReleasedKeyColumns = Columns[UniqueKey]{UniqueKeyColumns[0], UniqueKeyColumns[2]}

// ReleaseKeys deletes the rows of unique keys that tasks of the batch have taken last. The batch has
// [ReleasedKeyColumns].
func ReleaseKeys(s dialect.Server, tables dialect.Tables, size int) Stmt {
	b := newBuilder(s, tables)
	source := b.withBatch(ReleasedKeyColumns.columns(), size)
	b.setKeys(source, "hash", "task_id")
	b.set("table", "{uniques}")
	return b.stmt(source.delete())
}

// EndKeyTime ends the time for which a unique key is held. Parameters: hash.
func EndKeyTime(s dialect.Server, tables dialect.Tables) Stmt {
	return newBuilder(s, tables).stmt(`
update {uniques} set held_until = {now} where hash = {text :hash} and held_until > {now}`)
}

// DropKeys deletes the rows of unique keys that still have their token. The batch has
// [DroppedKeyColumns].
func DropKeys(s dialect.Server, tables dialect.Tables, size int) Stmt {
	b := newBuilder(s, tables)
	source := b.withBatch(DroppedKeyColumns.columns(), size)
	b.setKeys(source, "hash", "token")
	b.set("table", "{uniques}")
	return b.stmt(source.delete())
}
