package systemtest

import (
	"context"
	"crypto/rand"
	"errors"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jmoiron/sqlx"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/flow"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/migrations"
	"github.com/falldue/falldue/ops"
	"github.com/falldue/falldue/periodic"
)

// rightsOf returns the SQL that docs/rights.md has for an engine, before and after the
// migration, with names that no other test has in place of shop.
func rightsOf(t *testing.T, engine, database, prefix string) (before, after, unique, flows string) {
	t.Helper()
	heading := "## MySQL and MariaDB\n"
	if engine == testdb.Postgres {
		heading = "## PostgreSQL\n"
	}
	_, text, _ := strings.Cut(readFile(t, filepath.Join("docs", "rights.md")), heading)
	text = regexp.MustCompile(`\bshop_`).ReplaceAllString(text, prefix+"_")
	text = regexp.MustCompile(`\bshop\b`).ReplaceAllString(text, database)
	blocks := regexp.MustCompile("(?s)```sql\n(.*?)```").FindAllStringSubmatch(text, 5)
	if len(blocks) < 5 {
		t.Fatalf("docs/rights.md has %d blocks for %s", len(blocks), engine)
	}
	before, after, unique, flows = blocks[0][1], blocks[1][1], blocks[3][1], blocks[4][1]
	switch engine {
	case testdb.MariaDB:
		after += blocks[2][1]
	case testdb.Postgres:
		unique, flows = blocks[2][1], blocks[3][1]
	}
	return before, after, unique, flows
}

// asUser returns a DSN with another user and the password of the page.
func asUser(t *testing.T, engine, dsn, user, role string) string {
	t.Helper()
	if engine == testdb.Postgres {
		u, err := url.Parse(dsn)
		if err != nil {
			t.Fatal(err)
		}
		u.User = url.UserPassword(user, role+"-password")
		return u.String()
	}
	cfg, err := mysql.ParseDSN(dsn)
	if err != nil {
		t.Fatal(err)
	}
	cfg.User, cfg.Passwd = user, role+"-password"
	return cfg.FormatDSN()
}

// TestRights runs the statements of docs/rights.md as they stand there. Each user does its
// work, and what it must not do is refused.
func TestRights(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		if engine == testdb.SQLite {
			t.Skip("SQLite has no users; a reader opens the file read-only")
		}
		if engine == testdb.TiDB {
			t.Skip("docs/rights.md promises nothing for TiDB")
		}
		for _, driver := range testdb.Drivers(engine) {
			t.Run(driver, func(t *testing.T) { checkRights(t, engine, driver) })
		}
	})
}

func checkRights(t *testing.T, engine, driver string) {
	dsn, prefix := testdb.DSN(t, engine), "u"+strings.ToLower(rand.Text()[:10])
	admin := sqlx.MustOpen(driver, dsn)
	t.Cleanup(func() { _ = admin.Close() })
	everywhere := "%"
	cfg := falldue.Config{}
	database := "database()"
	if engine == testdb.Postgres {
		cfg.Schema, database = "falldue", "current_database()"
	}
	if err := admin.Get(&database, "select "+database); err != nil {
		t.Fatal(err)
	}
	run := func(sql string) {
		for statement := range strings.SplitSeq(sql, ";\n") {
			if strings.TrimSpace(statement) == "" {
				continue
			}
			if _, err := admin.Exec(statement); err != nil {
				t.Fatalf("%v: %s", err, statement)
			}
		}
	}
	t.Cleanup(func() {
		for _, role := range []string{"migrator", "worker", "enqueuer", "reader"} {
			if engine == testdb.Postgres {
				run("drop owned by " + prefix + "_" + role + " cascade;\ndrop role " + prefix + "_" + role)
			} else {
				run("drop user " + prefix + "_" + role + "@'" + everywhere + "'")
			}
		}
	})
	as := func(role string) (*falldue.Queue, *sqlx.DB) {
		db := sqlx.MustOpen(driver, asUser(t, engine, dsn, prefix+"_"+role, role))
		t.Cleanup(func() { _ = db.Close() })
		q, err := falldue.New(db, cfg)
		if err != nil {
			t.Fatalf("%s: %v", role, err)
		}
		return q, db
	}
	refused := func(what string, err error) {
		t.Helper()
		if err == nil || !regexp.MustCompile(`denied|must be owner`).MatchString(err.Error()) {
			t.Errorf("%s: error %v, want that it is refused", what, err)
		}
	}
	ctx := t.Context()
	before, after, unique, flows := rightsOf(t, engine, database, prefix)
	if engine != testdb.Postgres {
		// A server may have an anonymous user of this host, who goes before '%'.
		var host string
		if err := admin.Get(&host, "select substring_index(user(), '@', -1)"); err != nil {
			t.Fatal(err)
		}
		here := strings.NewReplacer("'%'", "'"+host+"'")
		before, after, unique, flows, everywhere = here.Replace(before), here.Replace(after), here.Replace(unique), here.Replace(flows), host
	}
	run(before)
	migrator, migratorDB := as("migrator")
	if err := migrator.Migrate(ctx); err != nil {
		t.Fatalf("migrator: %v", err)
	}
	run(after)
	worker, workerDB := as("worker")
	enqueuer, enqueuerDB := as("enqueuer")
	reader, _ := as("reader")
	for name, q := range map[string]*falldue.Queue{"migrator": migrator, "worker": worker, "enqueuer": enqueuer} {
		if err := q.Migrate(ctx); err != nil {
			t.Errorf("%s: a migration with nothing to do: %v", name, err)
		}
	}

	kind := falldue.NewKind[int]("k", falldue.KindConfig{Policy: backoff.Constant(time.Millisecond).WithMaxAttempts(2), Limits: []falldue.Limit{falldue.AtMost(5)}})
	own := backoff.Constant(time.Second)
	first, err := kind.Enqueue(ctx, enqueuer, 1, falldue.EnqueueOptions{Policy: own})
	if err != nil {
		t.Fatalf("enqueuer: %v", err)
	}
	if _, err := kind.Enqueue(ctx, enqueuer, 1, falldue.EnqueueOptions{Policy: own}); err != nil {
		t.Fatalf("enqueuer: a policy that is stored: %v", err)
	}
	if _, err := kind.EnqueueMany(ctx, enqueuer, make([]int, 501)); err != nil {
		t.Fatalf("enqueuer: many: %v", err)
	}
	failing, err := kind.Enqueue(ctx, worker, -1)
	if err != nil {
		t.Fatalf("worker: %v", err)
	}
	if engine != testdb.MariaDB {
		refused("enqueuer reads payloads", second(ops.New(enqueuer).Tasks(ctx, ops.Filter{})))
		falldue.Handle(enqueuer, kind, func(context.Context, falldue.Task[int]) error { return nil })
		refused("enqueuer works", enqueuer.Run(ctx))
	}
	refused("enqueuer cancels", enqueuer.Cancel(ctx, first.ID))
	tasks := "falldue_tasks"
	if engine == testdb.Postgres {
		tasks = "falldue.falldue_tasks"
	}
	for column, value := range map[string]string{"id": "9223372036854775806", "fence": "9", "claimed_by": "'another'", "state": "'dead'"} {
		if engine == testdb.MariaDB && column == "id" { // INSERT … RETURNING id needs that grant
			continue
		}
		refused("enqueuer sets "+column, second(enqueuerDB.Exec("insert into "+tasks+" (queue, kind, updated_at, created_at, payload, "+column+
			") values ('default', 'k', current_timestamp, current_timestamp, '1', "+value+")")))
	}
	refused("reader enqueues", second(kind.Enqueue(ctx, reader, 1)))
	refused("reader cancels", reader.Cancel(ctx, first.ID))

	ran, died := make(chan int, 1000), make(chan bool, 10)
	falldue.Handle(worker, kind, func(_ context.Context, task falldue.Task[int]) error {
		if task.Args < 0 {
			died <- task.Attempt == 2
			return errors.New("fails")
		}
		ran <- task.Args
		return nil
	})
	running, stop := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- worker.Run(running) }()
	for range 503 {
		<-ran
	}
	for last := false; !last; {
		last = <-died
	}
	stop()
	if err := <-done; err != nil {
		t.Fatalf("worker: %v", err)
	}
	if info, err := reader.Task(ctx, failing.ID); err != nil || info.State != falldue.StateDead {
		t.Errorf("reader: the task that failed is %v (error %v)", info.State, err)
	}
	if list, err := reader.Attempts(ctx, failing.ID); err != nil || len(list) != 2 {
		t.Errorf("reader: %d attempts (error %v), want 2", len(list), err)
	}
	if counts, err := ops.New(reader).Counts(ctx); err != nil || len(counts) != 1 || counts[0].Tasks != 1 {
		t.Errorf("reader: the counts are %v (error %v), want one dead task", counts, err)
	}
	if counts, err := ops.New(reader).EstimateCounts(ctx); err != nil || len(counts) != 1 || counts[0].Tasks != 1 {
		t.Errorf("reader: the counts are about %v (error %v), want one dead task", counts, err)
	}
	waiting, err := kind.Enqueue(ctx, worker, 1, falldue.EnqueueOptions{Delay: time.Hour})
	if err != nil {
		t.Fatalf("worker: %v", err)
	}
	inspect(t, reader, waiting.ID)
	for _, p := range explain(t, worker) {
		if p.Err != nil {
			t.Errorf("worker: explain %s: %v", p.Statement, p.Err)
		}
	}
	for _, p := range explain(t, reader) {
		// The last are there while a worker is announced that has limits.
		reads := []string{"sweep", "next_lane", "look", "read_permits"}
		if engine != testdb.Postgres { // where a claim begins with a SELECT
			reads = append(reads, "claim", "claim_with_limits", "claim_in_order")
		}
		if !slices.Contains(reads, p.Statement) {
			refused("reader explains "+p.Statement, p.Err)
		} else if p.Err != nil || len(p.Lines) == 0 {
			t.Errorf("reader: explain %s: %+v", p.Statement, p)
		}
	}
	refused("reader retries", reader.Retry(ctx, failing.ID))
	if err := errors.Join(worker.Retry(ctx, failing.ID), worker.Cancel(ctx, failing.ID), worker.Retry(ctx, failing.ID, falldue.RetryOptions{Args: -2})); err != nil {
		t.Errorf("worker: %v", err)
	}
	falldue.Handle(reader, kind, func(context.Context, falldue.Task[int]) error { return nil })
	if page, err := ops.New(reader).Tasks(ctx, ops.Filter{Match: "-2"}); err != nil || len(page.Tasks) != 1 || page.Tasks[0].Phase != falldue.PhaseDue {
		t.Errorf("reader: found %+v (error %v), want the due task", page, err)
	}
	if report, err := ops.New(reader).DeleteMany(ctx, ops.Filter{Kind: "k"}); err != nil || report.Failed != 2 {
		t.Errorf("reader: deleted %+v (error %v)", report, err)
	} else {
		refused("reader deletes", report.Failures[0].Err)
	}
	if report, err := ops.New(worker).DeleteMany(ctx, ops.Filter{Kind: "k"}); err != nil || report.Changed != 2 {
		t.Errorf("worker: deleted %+v (error %v)", report, err)
	}

	once := falldue.EnqueueOptions{Delay: time.Hour, Unique: falldue.Unique{By: falldue.ByArgs(), OnConflict: falldue.ConflictReplace}}
	if _, err := kind.Enqueue(ctx, worker, 7, once); err != nil {
		t.Errorf("worker: a unique task: %v", err)
	}
	refused("enqueuer enqueues unique tasks", second(kind.Enqueue(ctx, enqueuer, 7, once)))
	run(unique)
	checkUnique(t, enqueuer, enqueuerDB, kind, once)

	chain := flow.Chain(kind.Params(1), kind.Params(2))
	refused("enqueuer enqueues a flow", second(chain.Enqueue(ctx, enqueuer)))
	run(flows)
	if _, err := chain.Enqueue(ctx, enqueuer); err != nil {
		t.Errorf("enqueuer: a flow: %v", err)
	}

	checkSchedules(t, worker, reader, kind)
	refused("reader pauses a schedule", periodic.Pause(ctx, reader, "s"))
	refused("worker drops the tables", drop(ctx, t, workerDB, cfg))
	if err := drop(ctx, t, migratorDB, cfg); err != nil {
		t.Errorf("migrator: drop the tables: %v", err)
	}
	refused("worker creates the tables", worker.Migrate(ctx))
}

// checkSchedules ticks as the worker, and lists schedules as the reader.
func checkSchedules(t *testing.T, worker, reader *falldue.Queue, k falldue.Kind[int]) {
	t.Helper()
	schedules, err := periodic.New(worker, periodic.Schedule{Name: "s", Spec: "@every 1s", Task: k.Params(1)})
	if err != nil {
		t.Fatal(err)
	}
	for list, err := periodic.List(t.Context(), reader); len(list) == 0 || list[0].LastTask == 0; list, err = periodic.List(t.Context(), reader) {
		if _, ticked := schedules.Tick(t.Context()); err != nil || ticked != nil {
			t.Fatalf("reader: %v, worker: tick: %v", err, ticked)
		}
	}
	if _, err := periodic.Trigger(t.Context(), worker, "s"); err != nil {
		t.Errorf("worker: trigger: %v", err)
	}
	if list, err := periodic.List(t.Context(), reader); err != nil || len(list) != 1 || list[0].LastTask == 0 {
		t.Errorf("reader: the schedules are %+v (error %v)", list, err)
	}
}

// checkUnique enqueues unique tasks in all ways.
func checkUnique(t *testing.T, q *falldue.Queue, db *sqlx.DB, k falldue.Kind[int], once falldue.EnqueueOptions) {
	t.Helper()
	waiting := falldue.EnqueueOptions{Delay: time.Hour, Unique: falldue.Unique{By: falldue.ByArgs(), WhileWaiting: true}}
	for i, o := range []falldue.EnqueueOptions{once, waiting} {
		if r, err := k.Enqueue(t.Context(), q, 7, o); err != nil || !r.Existed {
			t.Errorf("enqueuer: a unique task that exists: %+v, %v", r, err)
		}
		tx := db.MustBegin()
		if r, err := k.EnqueueTx(t.Context(), q, tx, 7, o); err != nil || !r.Existed {
			t.Errorf("enqueuer: in a transaction: %+v, %v", r, err)
		}
		if err := tx.Commit(); err != nil {
			t.Error(err)
		}
		if r, err := k.Enqueue(t.Context(), q, 8, o); err != nil || r.Existed != (i == 1) {
			t.Errorf("enqueuer: a new unique task: %+v, %v", r, err)
		}
	}
}

// inspect looks at the tables as a reader may. Only InnoDB's own tables need another right.
func inspect(t *testing.T, reader *falldue.Queue, waiting int64) {
	t.Helper()
	o := ops.New(reader)
	if err := errors.Join(second(o.Queues(t.Context())), second(o.Overdue(t.Context(), 0)), second(o.Profile(t.Context())), second(o.Workers(t.Context())), second(o.Why(t.Context(), waiting))); err != nil {
		t.Errorf("reader: %v", err)
	}
	findings, err := o.Diagnose(t.Context())
	if err != nil {
		t.Errorf("reader: %v", err)
	}
	for _, f := range findings {
		if f.Level == ops.Unchecked && !strings.Contains(f.Text, "took longer") && f.Check != "history" && f.Check != "transactions" && f.Check != "claims" {
			t.Errorf("reader: %+v", f)
		}
	}
}

// explain returns the plans of what workers send, as a user may see them.
func explain(t *testing.T, q *falldue.Queue) []ops.Plan {
	t.Helper()
	plans, err := ops.New(q).Explain(t.Context(), falldue.DefaultQueue)
	if err != nil || len(plans) < 6 {
		t.Errorf("explained %+v, error %v", plans, err)
	}
	return plans
}

func second[T any](_ T, err error) error { return err }

// drop drops the tables as a user may.
func drop(ctx context.Context, t *testing.T, db *sqlx.DB, cfg falldue.Config) error {
	t.Helper()
	server, err := dialect.Probe(ctx, db)
	if err != nil {
		t.Fatal(err)
	}
	m, err := migrations.New(db.DB, server, dialect.Tables{Schema: cfg.Schema, Prefix: "falldue_"})
	if err != nil {
		t.Fatal(err)
	}
	return second(m.Down(ctx))
}
