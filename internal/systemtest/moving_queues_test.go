package systemtest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/testdb"
)

// otherQueue is a queue whose waiting jobs a page of docs/moving moves by SQL. Its
// tables, with jobs in all their states, are in testdata/moving.
type otherQueue struct {
	name string // of the page
	kind string
	// fixtures are the files with the tables, by engine.
	fixtures map[string]string
	// left counts the rows that must stay; there are stay of them.
	left string
	stay int
	// take is what a worker of the other queue does when it takes the first job.
	take []string
	// add adds a job that waits.
	add []string
	// keys and priorities are those of the tasks, in the order in which they fall due.
	keys       [4]string
	priorities [4]int
	// The other queue knows these: the limit on attempts, the last error.
	hasLimit, hasError bool
	// first and last are when the first and the last attempt of a failed job began. It
	// is the job's creation if the other queue does not know.
	first, last string
	// isArray is whether the payload is an array of arguments.
	isArray bool
}

// invoiceArgs are the arguments of the jobs that move.
type invoiceArgs struct {
	Order int `json:"order"`
}

var otherQueues = []otherQueue{
	{
		name: "river", kind: "invoice.send", fixtures: map[string]string{testdb.Postgres: "postgres", testdb.SQLite: "sqlite"},
		left: "select count(*) from river_job", stay: 5,
		take:       []string{"update river_job set state = 'running', attempt = 1 where id = 1"},
		add:        []string{`insert into river_job (kind, args) values ('invoice.send', '{"order": 5}')`},
		priorities: [4]int{2}, hasLimit: true, hasError: true,
		first: "2026-01-02T04:04:05.678123Z", last: "2026-01-02T05:04:05Z",
	},
	{
		name: "oban", kind: "Shop.InvoiceWorker", fixtures: map[string]string{testdb.Postgres: "postgres", testdb.MySQL: "mysql", testdb.SQLite: "sqlite"},
		left: "select count(*) from oban_jobs", stay: 5,
		take:       []string{"update oban_jobs set state = 'executing', attempt = 1 where id = 1"},
		add:        []string{`insert into oban_jobs (worker, args) values ('Shop.InvoiceWorker', '{"order": 5}')`},
		priorities: [4]int{2}, hasLimit: true, hasError: true,
		first: "2026-01-02T04:04:05.678123Z", last: "2026-01-02T05:04:05Z",
	},
	{
		name: "solid-queue", kind: "Shop::InvoiceJob", fixtures: map[string]string{testdb.Postgres: "postgres", testdb.MySQL: "mysql", testdb.MariaDB: "mysql", testdb.SQLite: "sqlite"},
		// An execution without its job would count too. The second job is blocked by the first.
		left: `select count(*) from (select id from solid_queue_jobs
			union all select job_id from solid_queue_ready_executions where job_id not in (select id from solid_queue_jobs)
			union all select job_id from solid_queue_scheduled_executions where job_id not in (select id from solid_queue_jobs)
			union all select job_id from solid_queue_blocked_executions where job_id not in (select id from solid_queue_jobs)) as left_over`, stay: 4,
		take: []string{
			"select id from solid_queue_ready_executions where job_id = 1 for update",
			"insert into solid_queue_claimed_executions (job_id, process_id, created_at) values (1, 7, '2026-01-02')",
			"delete from solid_queue_ready_executions where job_id = 1",
		},
		add: []string{
			`insert into solid_queue_jobs (id, queue_name, class_name, arguments, created_at, updated_at)
				values (5, 'default', 'Shop::InvoiceJob', '{"arguments": [{"order": 5}], "executions": 0}', '2026-01-02', '2026-01-02')`,
			"insert into solid_queue_ready_executions (job_id, queue_name, created_at) values (5, 'default', '2026-01-02')",
		},
		keys:       [4]string{"Shop::InvoiceJob/1", "Shop::InvoiceJob/1"},
		priorities: [4]int{2, 0, -32768, 32767}, isArray: true,
		first: "2026-01-02T03:04:05.123456Z", last: "2026-01-02T03:04:05.123456Z",
	},
	{
		name: "tasks-table", kind: "invoice.send",
		fixtures: map[string]string{testdb.Postgres: "postgres", testdb.MySQL: "mysql", testdb.MariaDB: "mysql", testdb.TiDB: "mysql", testdb.SQLite: "sqlite"},
		left:     "select count(*) from tasks", stay: 4,
		take:     []string{"update tasks set status = 'running', attempts = 1 where id = 1"},
		add:      []string{`insert into tasks (kind, payload) values ('invoice.send', '{"order": 5}')`},
		hasLimit: true, hasError: true,
		first: "2026-01-02T03:04:05.123456Z", last: "2026-01-02T05:04:05Z",
	},
}

func (o otherQueue) page() string { return "docs/moving/" + o.name + ".md" }

// engineNames are the engines as the pages call them.
var engineNames = map[string]string{testdb.Postgres: "PostgreSQL", testdb.MySQL: "MySQL", testdb.MariaDB: "MariaDB", testdb.TiDB: "TiDB", testdb.SQLite: "SQLite"}

func eachOtherQueue(t *testing.T, f func(t *testing.T, other otherQueue, engine string)) {
	for _, other := range otherQueues {
		t.Run(other.name, func(t *testing.T) {
			t.Parallel()
			testdb.Each(t, func(t *testing.T, engine string) {
				if other.fixtures[engine] == "" {
					t.Skip("the page is not for this engine")
				}
				f(t, other, engine)
			})
		})
	}
}

// openOther opens a database that has the other queue's tables and falldue's.
func openOther(t *testing.T, other otherQueue, engine string) (*sqlx.DB, *falldue.Queue) {
	t.Helper()
	db := testdb.Open(t, engine)
	runScript(t, db, readFile(t, "internal/systemtest/testdata/moving/"+other.name+"."+other.fixtures[engine]+".sql"))
	return db, migrated(t, db)
}

func runScript(t *testing.T, db *sqlx.DB, script string) {
	t.Helper()
	if err := execScript(t.Context(), db, script); err != nil {
		t.Fatal(err)
	}
}

// execScript runs the statements of a script one after the other on one connection.
func execScript(ctx context.Context, db *sqlx.DB, script string) error {
	conn, err := db.Connx(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	return execOn(ctx, conn, script)
}

func execOn(ctx context.Context, conn *sqlx.Conn, script string) error {
	for stmt := range strings.SplitSeq(strings.TrimSpace(script), ";\n") {
		if _, err := conn.ExecContext(ctx, strings.TrimSuffix(stmt, ";")); err != nil {
			return errors.Join(errors.New(stmt), err)
		}
	}
	return nil
}

// blocks returns the blocks of a document that are in a language.
func blocks(t *testing.T, file, language string) (list []string) {
	t.Helper()
	for _, text := range strings.Split(readFile(t, file), "\n```"+language+"\n")[1:] {
		text, _, _ = strings.Cut(text, "\n```\n")
		list = append(list, text+"\n")
	}
	return list
}

// sqlBlock returns the SQL that a page shows for an engine: the block whose first line
// names it.
func sqlBlock(t *testing.T, file, engine string) string {
	t.Helper()
	for _, block := range blocks(t, file, "sql") {
		first, rest, _ := strings.Cut(block, "\n")
		if slices.Contains(strings.Split(strings.TrimPrefix(first, "-- "), ", "), engineNames[engine]) {
			return rest
		}
	}
	t.Fatalf("%s has no block of SQL for %s", file, engineNames[engine])
	return ""
}
