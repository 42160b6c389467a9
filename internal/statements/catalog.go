package statements

import "github.com/falldue/falldue/dialect"

// Fact is a fact about a database that its catalog has.
type Fact string

// The facts. Not all catalogs have all of them.
const (
	// FactRows is about how many tasks there are, by the server's statistics.
	FactRows Fact = "rows"
	// FactDeadRows is how many dead versions of rows the table of tasks has. Its detail is
	// the number of live ones.
	FactDeadRows Fact = "dead_rows"
	// FactOldestTransaction is the age of the oldest transaction in microseconds. Its detail
	// names the session.
	FactOldestTransaction Fact = "oldest_transaction"
	// FactHistory is how many old versions of rows InnoDB keeps.
	FactHistory Fact = "history"
	// FactIndexBytes is the size of the indexes of the table of tasks. Its detail is the number
	// of live rows.
	FactIndexBytes Fact = "index_bytes"
	// FactFreeBytes is how much of the table of tasks is free. Its detail is the size of the
	// rest.
	FactFreeBytes Fact = "free_bytes"
	// FactKeptWAL is how much write-ahead log the replication slot that lags most keeps. Its
	// detail is the name of the slot.
	FactKeptWAL Fact = "kept_wal"
	// FactReadsWAL is 1 if the user may ask for FactWALBytes. Otherwise there is no row.
	FactReadsWAL Fact = "reads_wal"
	// FactWALBytes is the size of all files of the write-ahead log. Its detail is the size that
	// the server tries to keep to, in bytes.
	FactWALBytes Fact = "wal_bytes"
	// FactFile is 0. Its detail is the path of the database's file.
	FactFile Fact = "file"
	// FactFreePages is how many pages of the file are free. Its detail is the number of all.
	FactFreePages Fact = "free_pages"
)

// FactRow is a result of [Facts].
type FactRow struct {
	Amount int64
	Detail string
}

// FactColumns are the columns of a result of [Facts].
var FactColumns = Columns[FactRow]{
	col("amount", Int, func(f *FactRow) any { return &f.Amount }),
	col("detail", Text, func(f *FactRow) any { return &f.Detail }),
}

// Facts returns the statements that ask the server's catalog for facts. Each returns
// [FactColumns], or no row if the server does not know. Parameters: table, the name of the
// table of tasks as [TableParam] returns it.
func Facts(s dialect.Server) map[Fact]Stmt {
	b := newBuilder(s, dialect.Tables{})
	facts := map[Fact]Stmt{}
	switch s.Caps.Catalog {
	case dialect.PgCatalog:
		facts[FactRows] = b.fact(`
select greatest(c.reltuples::bigint, s.n_live_tup), '' from pg_catalog.pg_class c join pg_catalog.pg_stat_all_tables s on s.relid = c.oid
where c.oid = pg_catalog.to_regclass({text :table})::oid`)
		facts[FactDeadRows] = b.fact(`
select s.n_dead_tup, s.n_live_tup::text from pg_catalog.pg_stat_all_tables s
where s.relid = pg_catalog.to_regclass({text :table})::oid`)
		facts[FactIndexBytes] = b.fact(`
select coalesce(pg_catalog.sum(pg_catalog.pg_relation_size(i.indexrelid::regclass)), 0)::bigint, max(s.n_live_tup)::text from pg_catalog.pg_index i join pg_catalog.pg_stat_all_tables s on s.relid = i.indrelid
where i.indrelid = pg_catalog.to_regclass({text :table})::oid having count(*) > 0`)
		facts[FactKeptWAL] = b.fact(`
select t.bytes, t.slot from (select pg_catalog.pg_wal_lsn_diff(case when pg_catalog.pg_is_in_recovery() then pg_catalog.pg_last_wal_replay_lsn() else pg_catalog.pg_current_wal_lsn() end, r.restart_lsn)::bigint as bytes, r.slot_name::text as slot from pg_catalog.pg_replication_slots r
where r.restart_lsn is not null) t
order by t.bytes desc limit 1`)
		facts[FactReadsWAL] = b.fact(`
select 1, '' where pg_catalog.has_function_privilege('pg_catalog.pg_ls_waldir()', 'execute')`)
		facts[FactWALBytes] = b.fact(`
select coalesce(pg_catalog.sum(w.size), 0)::bigint, pg_catalog.pg_size_bytes(pg_catalog.current_setting('max_wal_size'))::text from pg_catalog.pg_ls_waldir() w`)
		facts[FactOldestTransaction] = b.fact(`
select {micros {now}} - {micros t.since}, t.session from (select a.xact_start as since, 'session ' || a.pid::text || ' (' || coalesce(a.application_name, '') || ', ' || coalesce(a.state, '') || ')' as session from pg_catalog.pg_stat_activity a
where a.datname = pg_catalog.current_database() and a.xact_start is not null and a.pid <> pg_catalog.pg_backend_pid()
union all select p.prepared, 'prepared transaction ' || p.gid from pg_catalog.pg_prepared_xacts p
where p.database = pg_catalog.current_database()) t
order by t.since limit 1`)
	case dialect.InnoDBCatalog:
		facts[FactRows] = b.fact(informationSchemaRows)
		facts[FactOldestTransaction] = b.fact(`
select greatest(timestampdiff(microsecond, trx_started, now(6)), 0), concat('session ', trx_mysql_thread_id) from information_schema.innodb_trx
where trx_mysql_thread_id <> connection_id()
order by trx_started limit 1`)
		facts[FactFreeBytes] = b.fact(`
select data_free, cast(data_length + index_length as char) from information_schema.tables
where table_schema = database() and table_name = :table`)
		facts[FactHistory] = b.fact(`
select {quote count}, '' from information_schema.innodb_metrics
where name = 'trx_rseg_history_len'`)
	case dialect.InformationSchema:
		facts[FactRows] = b.fact(informationSchemaRows)
	case dialect.Pragmas:
		facts[FactFile] = b.fact(`
select 0, file from pragma_database_list where name = 'main'`)
		facts[FactFreePages] = b.fact(`
select f.freelist_count, cast(p.page_count as text) from pragma_freelist_count f, pragma_page_count p`)
	}
	return facts
}

const informationSchemaRows = `
select table_rows, '' from information_schema.tables
where table_schema = database() and table_name = :table`

// fact makes a statement of [Facts].
func (b *builder) fact(template string) Stmt {
	other := *b
	other.params = nil
	return other.stmt(template)
}

// BinaryLogs returns the statement that lists the server's binary logs, with their sizes in the
// second column, and false for a server that has none. The statement fails if there are none, and
// for a user without the permission.
func BinaryLogs(s dialect.Server) (Stmt, bool) {
	if s.Caps.Catalog != dialect.InnoDBCatalog {
		return Stmt{}, false
	}
	return newBuilder(s, dialect.Tables{}).stmt(`show binary logs`), true
}

// TableParam returns the value of the parameter table of [Facts].
func TableParam(s dialect.Server, tables dialect.Tables) string {
	if s.Caps.Catalog == dialect.PgCatalog {
		return tables.Name(s, "tasks")
	}
	return tables.Prefix + "tasks"
}

// AllPolicies selects the keys and texts of policies after :after, in the order of their
// keys, up to :limit.
func AllPolicies(s dialect.Server, tables dialect.Tables) Stmt {
	return newBuilder(s, tables).stmt(`
select t.{quote key}, t.policy from {policies} t
where t.{quote key} > :after
order by t.{quote key} limit :limit`)
}

// Abandoned counts up to :limit tasks whose leases ended at least :age microseconds ago and that no
// worker has claimed since. It may read the whole table.
func Abandoned(s dialect.Server, tables dialect.Tables) Stmt {
	return newBuilder(s, tables).stmt(`
select count(*) from (select 1 from {tasks}
where state in ('open', 'snoozed') and claimed_by <> '' and updated_at <= {shift {now}, -({int :age})} limit :limit) t`)
}

// EndlessRun is a run as [EndlessRuns] returns it.
type EndlessRun struct {
	ID     int64
	Worker string
}

// EndlessRunColumns are the columns of a result of [EndlessRuns].
var EndlessRunColumns = Columns[EndlessRun]{
	col("id", Int, func(e *EndlessRun) any { return &e.ID }),
	col("claimed_by", Text, func(e *EndlessRun) any { return &e.Worker }),
}

// EndlessRuns selects up to :limit tasks that a worker has run for :age microseconds, or whose
// leases last for as long from now, as [EndlessRunColumns]. It may read the whole table.
func EndlessRuns(s dialect.Server, tables dialect.Tables) Stmt {
	b := newBuilder(s, tables)
	b.set("run", EndlessRunColumns.list("", map[string]string{"claimed_by": "coalesce(rtrim(claimed_by), '')"}))
	return b.stmt(`
select {run} from {tasks}
where state in ('open', 'snoozed') and claimed_by <> '' and updated_at > {now}
and (attempted_at <= {shift {now}, -({int :age})} or updated_at > {shift {now}, {int :age}}) limit :limit`)
}

// Explain returns a statement that returns the plan of another one, with the same parameters.
func Explain(s dialect.Server, stmt Stmt) Stmt {
	stmt.SQL = s.Caps.Explain + stmt.SQL
	return stmt
}
