package systemtest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/flow"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/ops"
	"github.com/falldue/falldue/periodic"
	"github.com/falldue/falldue/steps"
)

// column is a column of one of falldue's tables.
type column struct {
	Table, Name, Type string
}

// columnsOf lists the columns of all of falldue's tables, as the engine describes them.
func columnsOf(t *testing.T, db *sqlx.DB, engine string) (list []column) {
	t.Helper()
	query := `select table_name as "table", column_name as name, data_type as type from information_schema.columns
where table_name like 'falldue%' and table_schema = ` + map[bool]string{true: "current_schema()", false: "database()"}[engine == testdb.Postgres]
	if engine == testdb.SQLite {
		query = `select m.name as "table", c.name, c.type from sqlite_master m join pragma_table_info(m.name) c where m.type = 'table' and m.name like 'falldue%'`
	} else if engine != testdb.Postgres {
		query = strings.ReplaceAll(query, `"table"`, "`table`")
	}
	rows, err := db.QueryxContext(t.Context(), query)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var c column
		if err := rows.Scan(&c.Table, &c.Name, &c.Type); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(c.Table, "version") && !strings.Contains(c.Table, "migrations") {
			list = append(list, c)
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(list, func(a, b column) int { return strings.Compare(a.Table+" "+a.Name, b.Table+" "+b.Name) })
	return list
}

// extremes are values that the type of a column may hold, as SQL.
func (c column) extremes(engine string) []string {
	never, always := "'9999-12-31 23:59:59'", "'0000-00-00'"
	if engine == testdb.Postgres {
		never, always = "'infinity'", "'-infinity'"
	}
	texts := []string{"''", "'nonsense'", "'null'", "'[]'", "'{}'", "'17'", `'"' || 'x' || '"'`}
	switch kind := strings.ToLower(c.Type); {
	case c.Name == "id" && strings.Contains(kind, "int"):
		return []string{"-1", "0"} // after the greatest id, the server has no id for any other row
	case strings.Contains(kind, "time"), strings.Contains(kind, "date"):
		return []string{never, always, "'1970-01-01 00:00:00'"}
	case strings.Contains(kind, "json"):
		return []string{"'null'", "'[]'", "'{}'", "'17'", `'"x"'`, "'[null]'"}
	case engine == testdb.SQLite && strings.Contains(kind, "int"):
		return []string{"9223372036854775807", "-9223372036854775807", "-1", "0", "'many'", "1.5", "x'00'"}
	case strings.Contains(kind, "smallint"):
		return []string{"32767", "-32768", "-1", "0"}
	case strings.Contains(kind, "bigint"):
		return []string{"9223372036854775807", "-9223372036854775807", "-1", "0"}
	case strings.Contains(kind, "int"):
		return []string{"2147483647", "-2147483648", "-1", "0"}
	case strings.Contains(kind, "bool"):
		return []string{"true", "false"}
	case engine == testdb.SQLite:
		return append(texts, "x'ff00'", "17")
	case strings.Contains(kind, "char"), strings.Contains(kind, "text"):
		return texts[:len(texts)-1]
	}
	return []string{"null"}
}

// victims has rows in the tables, and a worker that must run plain tasks whatever the rows contain.
type victims struct {
	q      *falldue.Queue
	ops    *ops.Ops
	plain  falldue.Kind[string]   // its tasks must run
	others []falldue.Kind[string] // which use other tables
	broken falldue.Kind[string]   // its handlers fail
	ran    chan string
	tick   *periodic.Scheduler
}

func newVictims(t *testing.T, db *sqlx.DB, log *lockedBuilder) *victims {
	t.Helper()
	q, err := falldue.New(db, falldue.Config{
		DoneRetention: time.Hour, PollInterval: 20 * time.Millisecond, Lease: time.Second, Logger: slog.New(slog.NewTextHandler(log, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := q.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	v := &victims{q: q, ops: ops.New(q), ran: make(chan string, 1000)}
	kind := func(name string, cfg falldue.KindConfig) falldue.Kind[string] {
		k := falldue.NewKind[string](name, cfg)
		falldue.Handle(q, k, func(ctx context.Context, task falldue.Task[string]) error {
			if _, err := steps.Do(ctx, task, "one", func(context.Context) (string, error) { return "x", nil }); err != nil {
				return err
			}
			task.Progress(0.5, "half")
			return nil
		})
		return k
	}
	v.plain = falldue.NewKind[string]("plain", falldue.KindConfig{})
	falldue.Handle(q, v.plain, func(_ context.Context, task falldue.Task[string]) error {
		v.ran <- task.Args
		return nil
	})
	v.others = []falldue.Kind[string]{
		kind("limited", falldue.KindConfig{Limits: []falldue.Limit{falldue.AtMost(2).PerKey(), falldue.Rate(1000, time.Second)}}),
		kind("ordered", falldue.KindConfig{Limits: []falldue.Limit{falldue.InOrder()}}),
	}
	v.broken = falldue.NewKind[string]("broken", falldue.KindConfig{Policy: backoff.Constant(time.Hour)})
	falldue.Handle(q, v.broken, func(context.Context, falldue.Task[string]) error { return errors.New("broken") })
	if v.tick, err = periodic.New(q, periodic.Schedule{Name: "often", Spec: "@every 1h", Task: v.plain.Params("tick")}); err != nil {
		t.Fatal(err)
	}
	v.touch(t.Context())
	if err := v.ops.SetPolicy(t.Context(), falldue.Subject{Kind: "broken"}, mustOverride(t, "original * 2"), ops.OverrideOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := q.Pause(t.Context(), falldue.Subject{Kind: "elsewhere"}, falldue.PauseOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := v.ops.Record(t.Context(), ops.Deed{Action: "retry", Target: "task 1"}); err != nil {
		t.Fatal(err)
	}
	return v
}

// touch does what reads and writes the tables. Edited rows can make its parts fail.
func (v *victims) touch(ctx context.Context) (failed []error) {
	note := func(what string, err error) {
		if err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", what, err))
		}
	}
	for _, k := range v.others {
		_, err := k.Enqueue(ctx, v.q, "x", falldue.EnqueueOptions{Key: "key", Unique: falldue.Unique{By: falldue.ByArgs()}})
		note("enqueue "+k.Name(), err)
	}
	_, err := v.broken.Enqueue(ctx, v.q, "x", falldue.EnqueueOptions{Policy: backoff.Constant(2 * time.Hour)})
	note("enqueue broken", err)
	f := flow.Batch(v.others[0].Params("a"), v.broken.Params("b")).Then(v.others[0].Params("c"))
	_, err = f.Enqueue(ctx, v.q)
	note("enqueue a flow", err)
	_, err = v.tick.Tick(ctx)
	note("tick", err)
	return failed
}

// read calls what people read with, and returns errors by names.
func (v *victims) read(ctx context.Context) map[string]error {
	o, failed := v.ops, map[string]error{}
	note := func(what string, err error) {
		if err != nil {
			failed[what] = err
		}
	}
	page, err := o.Tasks(ctx, ops.Filter{})
	note("Tasks", err)
	for _, task := range page.Tasks[:min(len(page.Tasks), 5)] {
		_, err := o.Why(ctx, task.ID)
		note("Why", err)
		_, err = v.q.Attempts(ctx, task.ID)
		note("Attempts", err)
	}
	workers, err := o.Workers(ctx)
	note("Workers", err)
	_, err = o.Queues(ctx)
	note("Queues", err)
	_, err = o.Counts(ctx)
	note("Counts", err)
	_, err = o.Limits(ctx, workers)
	note("Limits", err)
	_, err = o.Failures(ctx)
	note("Failures", err)
	_, err = o.History(ctx, ops.HistoryFilter{})
	note("History", err)
	_, err = o.Overrides(ctx)
	note("Overrides", err)
	_, err = o.Pauses(ctx)
	note("Pauses", err)
	_, err = o.OwnPolicies(ctx)
	note("OwnPolicies", err)
	_, err = o.Overdue(ctx, 0)
	note("Overdue", err)
	_, err = o.Audit(ctx, 10)
	note("Audit", err)
	_, err = periodic.List(ctx, v.q)
	note("periodic.List", err)
	_, err = o.Diagnose(ctx)
	note("Diagnose", err)
	return failed
}

// edits returns the edits of all columns: one of each column, or all of them with FALLDUE_TEST_ALL=1.
func edits(columns []column, engine string) (list []string) {
	for i, c := range columns {
		values := c.extremes(engine)
		if !all() {
			values = values[i%len(values) : i%len(values)+1]
		}
		for _, value := range values {
			list = append(list, c.Table+" set "+c.Name+" = "+value)
		}
	}
	return list
}

// TestEveryColumnEditedIntoNonsense: while a column of any table contains an extreme value, other tasks run, and an
// operator's calls return. The test reads the list of columns from the database, so it covers columns of later features.
func TestEveryColumnEditedIntoNonsense(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		db := testdb.Open(t, engine)
		var log lockedBuilder
		v := newVictims(t, db, &log)
		conn := permissive(t, db, engine)
		exec := func(query string) error { _, err := conn.ExecContext(t.Context(), query); return err }
		columns := columnsOf(t, db, engine)
		if len(columns) < 100 {
			t.Fatalf("%d columns were found: %v", len(columns), columns)
		}
		for _, table := range slices.Sorted(maps.Keys(tablesOf(columns))) {
			copies := []string{"create table copy_of_" + table + " as select * from " + table}
			if engine == testdb.TiDB { // it lacks CREATE TABLE … SELECT
				copies = []string{"create table copy_of_" + table + " like " + table, "insert into copy_of_" + table + " select * from " + table}
			}
			for _, statement := range copies {
				if err := exec(statement); err != nil {
					t.Fatal(err)
				}
			}
		}
		run, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- v.q.Run(run) }()
		made := 0
		for _, edit := range edits(columns, engine) {
			if err := exec("update " + edit); err != nil {
				continue // the database refuses the value
			}
			made++
			for _, err := range v.touch(t.Context()) {
				t.Logf("%s: %v", edit, err)
			}
			for what, err := range v.read(t.Context()) {
				// Only SQLite stores other values in a column of numbers. The error names the column.
				if engine != testdb.SQLite || !strings.Contains(err.Error(), "is not a whole number") {
					t.Errorf("%s: %s: %v", edit, what, err)
				}
			}
			v.runs(t, edit)
			table, _, _ := strings.Cut(edit, " ")
			for _, again := range []string{"delete from " + table, "insert into " + table + " select * from copy_of_" + table} {
				if err := exec(again); err != nil {
					t.Fatalf("%s: %v", again, err)
				}
			}
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if made < len(columns)/2 {
			t.Errorf("the database took %d edits of %d columns", made, len(columns))
		}
		if strings.Contains(log.String(), "panicked") {
			t.Errorf("a panic:\n%.5000s", log.String())
		}
	})
}

// runs waits until a plain task that is enqueued now has run.
func (v *victims) runs(t *testing.T, edit string) {
	t.Helper()
	if _, err := v.plain.Enqueue(t.Context(), v.q, edit); err != nil {
		t.Errorf("%s: enqueue: %v", edit, err)
	}
	for patience := time.After(testdb.Patience); ; {
		select {
		case got := <-v.ran:
			if got == edit {
				return
			}
		case <-patience:
			t.Fatalf("%s: no other task runs", edit)
		}
	}
}

// tablesOf returns the tables of columns.
func tablesOf(columns []column) map[string]bool {
	tables := map[string]bool{}
	for _, c := range columns {
		tables[c.Table] = true
	}
	return tables
}

func mustOverride(t *testing.T, text string) backoff.Override {
	t.Helper()
	o, err := backoff.ParseOverride(text)
	if err != nil {
		t.Fatal(err)
	}
	return o
}
