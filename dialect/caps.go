package dialect

import (
	"errors"
	"fmt"
)

// Caps describes the features and the needs of a server. The statements,
// migrations and workers of falldue depend on Caps and never on the name of an
// engine, so an engine is described only here.
//
// [DefaultServer] has the Caps of each engine, and [Probe] adjusts them to the
// server that it queries.
//
// A comment such as "LockRows: ..." describes the feature that a server has if the field is true.
type Caps struct {
	// LockRows: SELECT … FOR UPDATE locks the rows that it returns. Without LockRows, a worker makes one claim at a time.
	LockRows bool
	// SkipLocked: FOR UPDATE SKIP LOCKED omits rows that other transactions have locked, so that workers do not wait for
	// each other. No guarantee of falldue depends on SkipLocked.
	SkipLocked bool
	// SharedLock is the clause that ends a SELECT and locks the returned rows against changes, such as " for share". On
	// most engines, several transactions can hold such a lock. SharedLock is required with LockRows.
	SharedLock string
	// SingleWriter: one transaction at a time writes to the database. A transaction that will write has to begin with
	// BEGIN IMMEDIATE, since a transaction that has read cannot begin to write after another transaction has written.
	SingleWriter bool
	// Begin has the statements that begin a transaction at READ COMMITTED or, with
	// SingleWriter, as the writer. Between two statements are a semicolon and a space.
	Begin string
	// DirtyReads: the default isolation level of sessions is READ UNCOMMITTED. Statements
	// read uncommitted changes of other sessions, except in a transaction that Begin begins.
	DirtyReads bool
	// OddSession is a query that returns one text: a setting of the session with which falldue cannot work, and a fix, or
	// an empty text if there is no such setting. falldue runs it on each connection, because the settings of sessions may
	// differ. OddSession is "" on engines without such settings.
	OddSession string
	// InTransaction is a query that returns one integer, which is 1 inside a transaction. InTransaction is set for servers
	// that can roll back a transaction while they prepare a statement, without an error.
	InTransaction string
	// MaxPacket is the maximum size of a statement with its values, in bytes. It is 0 if [Probe] finds no limit.
	MaxPacket int64
	// MaxRow is the maximum size of a row, in bytes. It is 0 if [Probe] finds no limit.
	MaxRow int64
	// Embedded: the database runs in the process of its client, without a network.
	Embedded bool
	// Locks is the kind of lock that a session can hold on a number or a name instead of a row.
	Locks Locks
	// TransactionPooling: a pooler gives any free session to each transaction, and to each
	// statement outside of a transaction. Statements must not be prepared by name, and a
	// lock lasts no longer than its transaction.
	TransactionPooling bool
	// CancelledCommitSucceeds: COMMIT reports success when the client cancels it
	// while it waits for a standby, although the standby does not have the transaction.
	CancelledCommitSucceeds bool
	// LossWithoutCode: the driver's error for a lost connection has neither a code nor a type. The connection itself
	// reports that it is lost ([database/sql/driver.Validator]).
	LossWithoutCode bool

	// InsertReturning: the server supports INSERT … RETURNING.
	InsertReturning bool
	// IDStep is the distance between two automatic IDs of one INSERT. It is 0
	// with InsertReturning, which returns the IDs.
	IDStep int64
	// AscendingIDs: a task has a greater automatic ID than all tasks stored before it.
	AscendingIDs bool
	// UpdateReturning: the server supports UPDATE … RETURNING and DELETE … RETURNING.
	UpdateReturning bool
	// WritableCTE: the server supports UPDATE … RETURNING inside WITH, after a subquery AS MATERIALIZED.
	WritableCTE bool
	// Lateral: a subquery in FROM may use the columns of the tables before it.
	Lateral bool
	// JSONLateral: LATERAL may use the columns of a JSON_TABLE, and reads an index in its order
	// if ORDER BY names all columns of that index. LIMIT takes no column.
	JSONLateral bool
	// RowAddress is the name of a system column, such as ctid. By this column, a locked row is found faster than by its
	// primary key. RowAddress is "" if the engine has no such column.
	RowAddress string
	// Upsert is how an INSERT omits rows that exist already.
	Upsert Upsert
	// Copy: the server supports COPY … FROM STDIN. falldue uses COPY only with a driver that can stream it, and gets the
	// IDs from nextval and pg_get_serial_sequence.
	Copy bool
	// Notify: the server supports LISTEN, and has the function pg_notify.
	Notify bool

	// Rows is the form in which a statement gets a batch of rows.
	Rows RowSource
	// NarrowUnions: a prepared UNION cuts off numbers and texts that are longer
	// than in its first run, unless its first SELECT reads columns.
	NarrowUnions bool
	// UnionValues: VALUES is allowed in a UNION, where it is cheaper than one SELECT
	// for each row.
	UnionValues bool
	// TypedParameters: the server derives one type for each parameter from its place
	// in the statement, and needs a cast where the place determines no type.
	TypedParameters bool
	// DynamicTypes: any column can hold a value of any type, and comparing two columns may convert one of them, so that no
	// index can be used. A unary plus turns a column into a plain value.
	DynamicTypes bool

	// PadsText: texts of a column that differ only in spaces at their ends are equal.
	PadsText bool
	// LooseScan: GROUP BY over a prefix of an index jumps from group to group.
	LooseScan bool
	// BigResult: SELECT SQL_BIG_RESULT sorts rows to group them. Without BigResult, the server looks up the group of each
	// row in a temporary table. With hundreds of thousands of groups, it moves this table to the disk, which takes four
	// times as long.
	BigResult bool
	// LaneExpression: the index of tasks holds the columns of a lane as one text, because comparing the columns one by one
	// costs the engine more than making that text. A lane is a group of tasks with the same delay. Sweeps, which look for
	// due tasks lane by lane, use that index only with Lateral.
	LaneExpression bool
	// JoinHints: /*+ inl_join(t) */ makes a join look up the rows of t by their key. Without JoinHints, the server relies
	// on statistics. If the statistics date from when the table was empty, the server reads the whole table for each
	// batch.
	JoinHints bool
	// CachesStatistics: the server plans with the number of rows from when it opened the table, which may have been empty
	// then. SHOW INDEX makes the server count again. Without a new count, sweeps would read every waiting task.
	CachesStatistics bool
	// ValueStatistics: the server counts how often values occur in a column, and treats a value that it has not counted as
	// rare. For such a value, the server prefers a comparison on a column without an index to a lookup by key.
	ValueStatistics bool
	// KeepsPlans: a prepared statement keeps its plan when the table grows, until
	// statistics are updated. falldue therefore prepares a slow statement anew.
	KeepsPlans bool

	// Catalog is where the server describes itself.
	Catalog Catalog
	// Explain is the beginning of a statement that returns the plan of another statement. WholeTable is a regular
	// expression that matches a line of such a plan if the line reads a whole table or index. In WholeTable, TABLE stands
	// for the table's name in the plan.
	Explain, WholeTable string

	// Schemas: a database has schemas, and CREATE SCHEMA creates one.
	Schemas bool
	// ReservedPrefix is the beginning of names that are reserved for the engine, or "".
	ReservedPrefix string
	// AmbiguousMissingTable: the error for a missing table has the same code as other
	// mistakes. The table sqlite_schema lists the tables.
	AmbiguousMissingTable bool
	// Migrations is the folder of package migrations that is written for the
	// engine.
	Migrations string
}

// Locks is a kind of lock that a session holds on a number or a name instead
// of a row.
type Locks int

// The kinds of such locks.
const (
	// NoLocks: sessions cannot hold such locks.
	NoLocks Locks = iota + 1
	// AdvisoryLocks: pg_try_advisory_lock and similar functions, with a 64-bit number.
	AdvisoryLocks
	// NamedLocks: GET_LOCK and RELEASE_LOCK, with a name that applies to all databases of the server.
	NamedLocks
)

// Catalog is where a server describes itself.
type Catalog int

// The catalogs.
const (
	// PgCatalog: pg_class, pg_stat_all_tables, pg_stat_activity.
	PgCatalog Catalog = iota + 1
	// InnoDBCatalog: information_schema, with the tables of InnoDB.
	InnoDBCatalog
	// InformationSchema: only information_schema.
	InformationSchema
	// Pragmas: table-valued functions for the pragmas of SQLite.
	Pragmas
)

// Upsert is how an INSERT omits rows that exist already.
type Upsert int

// The values of Upsert.
const (
	// OnConflict: ON CONFLICT DO NOTHING.
	OnConflict Upsert = iota + 1
	// OnDuplicateKey: INSERT IGNORE, and ON DUPLICATE KEY UPDATE.
	OnDuplicateKey
)

// RowSource is the form in which a statement gets a batch of rows, and in which UPDATE and DELETE join the batch.
type RowSource int

// The sources of rows.
const (
	// Arrays: one array parameter for each column, unnested WITH ORDINALITY.
	// Joined by UPDATE … FROM and DELETE … USING.
	Arrays RowSource = iota + 1
	// Unions: one parameter for each value, a SELECT for each row. Joined by MySQL's UPDATE and DELETE of several tables.
	Unions
	// ValueLists: one parameter for each value, in VALUES, whose columns are called column1, column2, …. Joined by UPDATE
	// … FROM a subquery with LIMIT -1, which means no limit and makes SQLite run the subquery separately.
	ValueLists
)

// Grows reports whether the text of a statement grows with its number of rows.
func (r RowSource) Grows() bool { return r != Arrays }

// Validate returns an error that lists all required fields that are missing and
// all fields that contradict each other, or nil. With invalid Caps, falldue would
// send statements that the server does not understand.
func (c Caps) Validate() error {
	var errs []error
	must := func(ok bool, text string) {
		if !ok {
			errs = append(errs, errors.New(text))
		}
	}
	must(c.Rows >= Arrays && c.Rows <= ValueLists, "Rows must be Arrays, Unions or ValueLists")
	must(c.Upsert == OnConflict || c.Upsert == OnDuplicateKey, "Upsert must be OnConflict or OnDuplicateKey")
	must(c.Locks >= NoLocks && c.Locks <= NamedLocks, "Locks must be NoLocks, AdvisoryLocks or NamedLocks")
	must(c.Catalog >= PgCatalog && c.Catalog <= Pragmas, "Catalog must be PgCatalog, InnoDBCatalog, InformationSchema or Pragmas")
	must(c.Explain != "" && c.WholeTable != "", "Explain and WholeTable must be set")
	must(c.Begin != "", "Begin must be set")
	must(c.Migrations != "", "Migrations must be set")
	must(c.InsertReturning || c.IDStep > 0, "one of InsertReturning and IDStep must be set: it returns the IDs of an INSERT")
	must(c.LockRows || !c.SkipLocked, "SkipLocked requires LockRows")
	must(!c.LockRows || c.SharedLock != "", "LockRows requires SharedLock")
	must(c.UpdateReturning || !c.WritableCTE, "WritableCTE requires UpdateReturning")
	if len(errs) > 0 {
		return fmt.Errorf("dialect: invalid Caps: %w", errors.Join(errs...))
	}
	return nil
}
