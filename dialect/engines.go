package dialect

import "fmt"

// The engines that falldue supports.
const (
	Postgres Name = "postgres"
	MySQL    Name = "mysql"
	MariaDB  Name = "mariadb"
	SQLite   Name = "sqlite"
	TiDB     Name = "tidb"
)

const (
	mysqlExplain    = "explain format=traditional "
	mysqlWholeTable = `^[^|]*\|[^|]*\| TABLE \|([^|]*\|)? (ALL|index) \|` // MySQL has the partitions before the type
)

// Parts of the queries [Caps.OddSession], which find settings of a session with which falldue cannot work. TiDB has no
// completion_type. [Probe] adds settings that it has read from one session and that others must have, too.
const (
	mysqlOddSession = "select case" +
		" when " + mysqlSelectLimit + " then concat('sql_select_limit is ', @@sql_select_limit, ', so that a SELECT omits rows; do not set it for falldue''s connections, or set it to its default, as in user:password@tcp(host)/database?sql_select_limit=18446744073709551615')" +
		" when find_in_set('EMPTY_STRING_IS_NULL', @@sql_mode) > 0 then 'the sql_mode has EMPTY_STRING_IS_NULL, which turns every empty text that falldue stores into NULL; remove it for falldue''s connections, as in user:password@tcp(host)/database?sql_mode=%27STRICT_TRANS_TABLES%27'" +
		" when @@sql_safe_updates = 1 then 'sql_safe_updates is 1, so that the server refuses some updates; set it to 0 for falldue''s connections, as in user:password@tcp(host)/database?sql_safe_updates=0'" +
		" when @@autocommit = 0 then 'autocommit is 0, so that statements outside a transaction have no effect; set it to 1 for falldue''s connections, as in user:password@tcp(host)/database?autocommit=1'" +
		" when @@character_set_client <> 'utf8mb4' then concat('character_set_client is ', @@character_set_client" + mysqlSetCharset +
		" when @@character_set_connection <> 'utf8mb4' then concat('character_set_connection is ', @@character_set_connection" + mysqlSetCharset +
		" when @@character_set_results <> 'utf8mb4' then concat('character_set_results is ', @@character_set_results" + mysqlSetCharset
	mysqlSelectLimit   = "@@sql_select_limit < 18446744073709551615"
	vitessSelectLimit  = "@@sql_select_limit > 0" // vtgate has 0 for no limit
	mysqlSetCharset    = ", ', which lacks characters; set it to utf8mb4 for falldue''s connections, as in user:password@tcp(host)/database?charset=utf8mb4')"
	mysqlOddCompletion = " when @@completion_type <> 'NO_CHAIN' then concat('completion_type is ', @@completion_type, ', so that a commit does more than commit; set it to NO_CHAIN for falldue''s connections, as in user:password@tcp(host)/database?completion_type=%27NO_CHAIN%27')"
	oddEnd             = " else '' end limit 1" // sql_select_limit may be 0
	postgresOddSession = "select case when pg_catalog.current_setting('server_encoding') not in ('UTF8', 'SQL_ASCII') then" +
		" pg_catalog.concat('the database has the encoding ', pg_catalog.current_setting('server_encoding'), ', which lacks characters; create it with the encoding UTF8')" +
		" when pg_catalog.current_setting('client_encoding') not in ('UTF8', 'SQL_ASCII') then" +
		" pg_catalog.concat('client_encoding is ', pg_catalog.current_setting('client_encoding'), ', which lacks characters; leave it out of the DSN, or set it to UTF8')"
)

// postgresOddTimeout finds a time after which the server would end sessions between two statements of a worker.
func postgresOddTimeout(name string) string {
	value := "coalesce(pg_catalog.current_setting('" + name + "', true), '0')" // older releases do not have all of them
	return " when " + value + "::interval > interval '0' and " + value + "::interval < interval '100 ms' then" +
		" pg_catalog.concat('" + name + " is ', " + value + ", ', and the server ends sessions while falldue uses them; set it to at least 100ms for falldue''s connections, or to 0')"
}

// mariaDBBegin is one statement, which saves a round trip. Its semicolons have no space after them: in [Caps.Begin], a
// semicolon and a space separate two statements.
const (
	mysqlBegin   = "set transaction isolation level read committed; start transaction"
	mariaDBBegin = "begin not atomic set transaction isolation level read committed;start transaction;end"
)

// engines describes each engine as Probe finds it where nothing is out of the
// ordinary, in the order in which documents name them.
var engines = []Server{
	{Dialect: postgres{}, Caps: Caps{
		LockRows: true, SkipLocked: true, SharedLock: " for share", Begin: "begin isolation level read committed", Locks: AdvisoryLocks,
		OddSession: postgresOddSession + postgresOddTimeout("idle_in_transaction_session_timeout") + postgresOddTimeout("idle_session_timeout") + postgresOddTimeout("transaction_timeout") + oddEnd, CancelledCommitSucceeds: true,
		InsertReturning: true, AscendingIDs: true, UpdateReturning: true, WritableCTE: true, Lateral: true, RowAddress: "ctid", Upsert: OnConflict, Copy: true, Notify: true,
		Rows: Arrays, TypedParameters: true, LaneExpression: true, ValueStatistics: true, KeepsPlans: true,
		Catalog: PgCatalog, Explain: "explain ", WholeTable: `Seq Scan on "?TABLE\b`,
		Schemas: true, ReservedPrefix: "pg_", Migrations: "postgres",
	}},
	{Dialect: mysql{MySQL}, Caps: Caps{
		LockRows: true, SkipLocked: true, SharedLock: " lock in share mode", Begin: mysqlBegin, Locks: NamedLocks, OddSession: mysqlOddSession + mysqlOddCompletion + oddEnd, LossWithoutCode: true, IDStep: 1, AscendingIDs: true, JSONLateral: true, Upsert: OnDuplicateKey,
		Rows: Unions, NarrowUnions: true, LooseScan: true, BigResult: true, PadsText: true, Migrations: "mysql",
		Catalog: InnoDBCatalog, Explain: mysqlExplain, WholeTable: mysqlWholeTable,
	}},
	{Dialect: mysql{MariaDB}, Caps: Caps{
		LockRows: true, SkipLocked: true, SharedLock: " lock in share mode", Begin: mariaDBBegin, Locks: NamedLocks, OddSession: mysqlOddSession + mysqlOddCompletion + oddEnd, InTransaction: "select cast(@@in_transaction as signed)", LossWithoutCode: true, InsertReturning: true, AscendingIDs: true, Upsert: OnDuplicateKey,
		Rows: Unions, NarrowUnions: true, UnionValues: true, LooseScan: true, BigResult: true, PadsText: true, CachesStatistics: true, Migrations: "mysql",
		Catalog: InnoDBCatalog, Explain: "explain ", WholeTable: mysqlWholeTable,
	}},
	{Dialect: sqlite{}, Caps: Caps{
		SingleWriter: true, Begin: "begin immediate", Embedded: true, Locks: NoLocks, InsertReturning: true, AscendingIDs: true, UpdateReturning: true, Upsert: OnConflict,
		Catalog: Pragmas, Explain: "explain query plan ", WholeTable: `^SCAN "?TABLE\b`,
		Rows: ValueLists, DynamicTypes: true, ReservedPrefix: "sqlite_", AmbiguousMissingTable: true, Migrations: "sqlite",
	}},
	// TiDB parses SKIP LOCKED and then locks nothing. Each of its servers has a range of
	// IDs of its own. Its GROUP BY does not jump,
	// but a recursion that could is not possible: it has no ORDER BY there.
	{Dialect: mysql{TiDB}, Caps: Caps{
		LockRows: true, SharedLock: " for update", Begin: mysqlBegin, Locks: NamedLocks, OddSession: mysqlOddSession + oddEnd, LossWithoutCode: true, IDStep: 1, Upsert: OnDuplicateKey,
		Rows: Unions, LooseScan: true, PadsText: true, JoinHints: true, Migrations: "mysql",
		Catalog: InformationSchema, Explain: "explain ", WholeTable: `(TableFullScan|IndexFullScan).*table:TABLE\b`,
	}},
}

// Names lists the engines in the order in which documents name them.
var Names = func() (names []Name) {
	for _, s := range engines {
		names = append(names, s.Name())
	}
	return names
}()

// Of returns the dialect of the named engine. For an unknown name, it returns an error that lists [Names].
func Of(name Name) (Dialect, error) {
	s, err := DefaultServer(name)
	if err != nil {
		return nil, err
	}
	return s.Dialect, nil
}

// DefaultServer returns the description of an ordinary server of the named engine,
// without a version. Use it instead of [Probe] to make SQL without a server, such as a
// dump of migrations. For an unknown name, it returns an error that lists [Names].
func DefaultServer(name Name) (Server, error) {
	for _, s := range engines {
		if s.Name() == name {
			return s, nil
		}
	}
	return Server{}, fmt.Errorf("dialect: unknown engine %q; the engines are %v", name, Names)
}
