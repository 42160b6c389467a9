package systemtest

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/internal/hooks"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/ops"
)

// edit is a change that somebody makes to a row.
type edit struct {
	set    string
	want   falldue.State // the state in which the task ends; "" if it does not end
	logged string        // what the log must contain
	most   int           // the policy's limit on attempts; 0 means 3, -1 no limit
}

// nonsense returns edits by their names.
func nonsense(engine string) map[string]edit {
	const outOfRange = "updated_at out of range"
	if engine == testdb.Galera {
		engine = testdb.MariaDB
	}
	words := map[string]struct{ never, always, long string }{
		testdb.Postgres: {"'infinity'", "'-infinity'", "to_json(repeat('x', 2000000))"},
		testdb.MySQL:    {"'9999-12-31 23:59:59'", "'0000-00-00'", `concat('"', repeat('x', 2000000), '"')`},
		testdb.MariaDB:  {"'9999-12-31 23:59:59'", "'0000-00-00'", `concat('"', repeat('x', 2000000), '"')`},
		testdb.TiDB:     {"'9999-12-31 23:59:59'", "'0000-00-00'", `concat('"', repeat('x', 2000000), '"')`},
		testdb.SQLite:   {"253402300799000000", "'yesterday'", `'"' || hex(zeroblob(1000000)) || '"'`},
	}[engine]
	edits := map[string]edit{
		"negative-attempts":    {"attempts = -7", falldue.StateDone, "attempts below 0", 0},
		"lowest-attempts":      {"attempts = -2147483648", falldue.StateDone, "attempts below 0", 0},
		"most-attempts":        {"attempts = 2147483647", falldue.StateDead, "", 0},
		"most-attempts-of-any": {"attempts = 2147483647", falldue.StateDone, "", -1},
		"highest-fence":        {"fence = 9223372036854775807", falldue.StateDead, "", 0},
		"highest-fence-lost":   {"fence = 9223372036854775807, claimed_by = 'nobody', attempts = 1", falldue.StateDead, "", 0},
		"lowest-fence":         {"fence = -9223372036854775807", falldue.StateDone, "", 0},
		"unknown-policy":       {"policy = 'nobodyknowsthis'", "", "nobodyknowsthis", 0},
		"unknown-kind":         {"kind = 'nobodyhandlesthis'", "", "", 0},
		"newer-state":          {"state = 'paused'", "", "", 0},
		"newest-state":         {"state = 'zzz'", "", "", 0},
		"oldest-state":         {"state = 'aaa'", "", "", 0},
		"never":                {"updated_at = " + words.never, "", outOfRange, 0},
		"always":               {"updated_at = " + words.always, "", outOfRange, 0},
		"negative-limit":       {"max_attempts = -1", falldue.StateDone, "", 0},
		"highest-limit":        {"max_attempts = 2147483647", falldue.StateDone, "", 0},
		"created-never":        {"created_at = " + words.never, falldue.StateDone, "", 0},
		"created-always":       {"created_at = " + words.always, falldue.StateDone, "", 0},
		"first-tried-never":    {"attempts = 1, first_attempted_at = " + words.never, falldue.StateDone, "", 0},
		"first-tried-always":   {"attempts = 1, first_attempted_at = " + words.always, falldue.StateDone, "", 0},
		"unknown-worker":       {"claimed_by = 'nobody', fence = 4, attempts = 1", falldue.StateDone, "", 0},
		"highest-priority":     {"priority = 32767", falldue.StateDone, "", 0},
		"lowest-priority":      {"priority = -32768", falldue.StateDone, "", 0},
		"another-type":         {"payload = '[17]'", falldue.StateDead, "", 0},
		"long-payload":         {"payload = " + words.long, falldue.StateDone, "", 0},
	}
	if engine != testdb.Postgres { // whose column takes only JSON
		edits["broken-payload"] = edit{"payload = '{\"half'", falldue.StateDead, "", 0}
		edits["no-payload"] = edit{"payload = ''", falldue.StateDead, "", 0}
		edits["broken-result"] = edit{"result = '{\"half'", falldue.StateDone, "", 0}
	}
	if engine == testdb.MySQL || engine == testdb.MariaDB || engine == testdb.TiDB { // to which these are equal to those without spaces
		edits["spaces-behind-kind"] = edit{"kind = concat(kind, '  ')", falldue.StateDone, "", 0}
		edits["spaces-behind-queue"] = edit{"queue = 'default '", falldue.StateDone, "", 0}
		edits["spaces-for-policy"] = edit{"policy = ' '", falldue.StateDone, "", 0}
		edits["spaces-behind-state"] = edit{"state = 'open '", falldue.StateDone, "", 0}
	}
	if engine == testdb.SQLite { // whose columns take anything
		edits["blob-kind"] = edit{"kind = cast(kind as blob)", "", "a blob", 0}
		edits["blob-policy"] = edit{"policy = x''", "", "a blob", 0}
		edits["blob-state"] = edit{"state = cast('open' as blob)", "", "", 0}
		edits["blob-queue"] = edit{"queue = cast(queue as blob)", "", "", 0}
		const unreadable = "is not a whole number"
		for name, e := range map[string]edit{
			"text-attempts":     {"attempts = 'many'", "", unreadable, 0},
			"half-an-attempt":   {"attempts = 1.5", "", unreadable, 0},
			"text-priority":     {"priority = 'high'", "", unreadable, 0},
			"text-fence":        {"fence = 'high'", "", "", 0},
			"text-limit":        {"max_attempts = 'many'", "", "", 0},
			"endless-attempts":  {"attempts = 9223372036854775807", falldue.StateDead, "", 0},
			"endless-priority":  {"priority = -9223372036854775807", falldue.StateDone, "", 0},
			"date-for-a-moment": {"updated_at = '2026-01-01'", "", outOfRange, 0},
			"before-all-time":   {"updated_at = -9223372036854775807", "", outOfRange, 0},
			"beyond-integers":   {"updated_at = 1e300", "", outOfRange, 0},
			"blobs":             {"claimed_by = x'ff00', payload = x'227822'", falldue.StateDone, "", 0},
		} {
			edits[name] = e
		}
	}
	return edits
}

// permissive opens a session in which an engine accepts values that it would refuse.
func permissive(t *testing.T, db *sqlx.DB, engine string) *sqlx.Conn {
	t.Helper()
	conn, err := db.Connx(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	for _, statement := range map[string][]string{
		testdb.MySQL:   {"alter table falldue_tasks drop check falldue_tasks_chk_1", "set sql_mode = ''"},
		testdb.MariaDB: {"set check_constraint_checks = off", "set sql_mode = ''"},
		testdb.Galera:  {"set check_constraint_checks = off", "set sql_mode = ''"},
		testdb.TiDB:    {"set sql_mode = ''"}, // TiDB checks nothing by default
		testdb.SQLite:  {"pragma ignore_check_constraints = on"},
	}[engine] {
		if _, err := conn.ExecContext(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	return conn
}

// TestRowsEditedIntoNonsense: whatever somebody writes into rows, the other tasks run,
// those behind them in the same lane too, with one handler at a time. Tasks that cannot
// run are logged.
func TestRowsEditedIntoNonsense(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		db := testdb.Open(t, engine)
		var log lockedBuilder
		q, err := falldue.New(db, falldue.Config{
			Concurrency: 1, DoneRetention: time.Hour, PollInterval: 10 * time.Millisecond, Logger: slog.New(slog.NewTextHandler(&log, nil)),
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := q.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		conn := permissive(t, db, engine)
		edits := nonsense(engine)
		bad, good := map[string]int64{}, map[string]int64{}
		var ran sync.Map // ids
		for name, e := range edits {
			policy := backoff.Constant(0)
			if e.most == 0 {
				policy = policy.WithMaxAttempts(3)
			}
			kind := falldue.NewKind[string](name, falldue.KindConfig{Policy: policy})
			receipts, err := kind.EnqueueMany(t.Context(), q, []string{"bad", "good"}, falldue.EnqueueOptions{RunAt: time.Now().Add(-time.Hour)})
			if err != nil {
				t.Fatal(err)
			}
			bad[name], good[name] = receipts[0].ID, receipts[1].ID
			update := db.Rebind("update falldue_tasks set " + e.set + " where id = ?")
			if _, err := conn.ExecContext(t.Context(), update, bad[name]); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			falldue.Handle(q, kind, func(_ context.Context, task falldue.Task[string]) error {
				ran.Store(task.ID, true)
				return nil
			})
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- q.Run(ctx) }()

		ends := func(what string, id int64, want falldue.State) {
			waitFor(t, what, func() bool {
				info, err := q.Task(t.Context(), id)
				return err == nil && info.State == want
			})
		}
		for name, e := range edits {
			ends("the task behind "+name, good[name], falldue.StateDone)
			if e.want != "" {
				ends(name, bad[name], e.want)
			}
			waitFor(t, name+" to be reported", func() bool { return reported(log.String(), name, e.logged) })
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		for name, e := range edits {
			if _, ok := ran.Load(bad[name]); ok && e.want == "" {
				t.Errorf("%s: the task ran", name)
			}
		}
		for _, stop := range []string{"cannot poll", "cannot claim", "cannot record"} {
			if strings.Contains(log.String(), stop) {
				t.Errorf("a row delayed others:\n%.2000s", log.String())
			}
		}
	})
}

// TestForgedPolicyIsRefused: a policy that was stored in advance under another policy's key neither
// takes the place of that policy nor lets its tasks wait indefinitely.
func TestForgedPolicyIsRefused(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, engine string) {
		db := testdb.Open(t, engine)
		q, err := falldue.New(db, falldue.Config{})
		if err != nil {
			t.Fatal(err)
		}
		if err := q.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		server := hooks.StoreOf(q).Server()
		own := backoff.Constant(time.Hour)
		db.MustExec("insert into falldue_policies (" + server.Quote("key") + ", policy, created_at) values ('" + own.Key() + "', 'delay 0s', " + server.Clock().Now + ")")
		kind := falldue.NewKind[string]("k", falldue.KindConfig{})
		refused := func(how string, err error) {
			if err == nil || !strings.Contains(err.Error(), own.Key()) || !strings.Contains(err.Error(), "delay 0s") {
				t.Errorf("%s: error %v, want one with the key and the stored text", how, err)
			}
		}
		_, err = kind.Enqueue(t.Context(), q, "x", falldue.EnqueueOptions{Policy: own})
		refused("enqueue", err)
		tx := db.MustBegin()
		_, err = kind.EnqueueTx(t.Context(), q, tx, "x", falldue.EnqueueOptions{Policy: own})
		refused("in a transaction", err)
		if err := tx.Rollback(); err != nil {
			t.Error(err)
		}
		if _, err := ops.New(q).PolicyByKey(t.Context(), own.Key()); err == nil {
			t.Error("ops reads the forged policy")
		}
	})
}

// reported reports whether a line of the log is about a kind and contains why.
func reported(log, kind, why string) bool {
	for line := range strings.Lines(log) {
		if strings.Contains(line, "kind="+kind+" ") && strings.Contains(line, why) {
			return true
		}
	}
	return why == ""
}

func TestRunLogsKindsOfOtherQueues(t *testing.T) {
	t.Parallel()
	var log lockedBuilder
	q, err := falldue.New(testdb.Open(t, testdb.SQLite), falldue.Config{
		Queues: map[string]falldue.QueueConfig{"mail": {Concurrency: 1}}, Logger: slog.New(slog.NewTextHandler(&log, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := q.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	for name, queue := range map[string]string{"sent": "mail", "forgotten": ""} {
		kind := falldue.NewKind[int](name, falldue.KindConfig{Queue: queue})
		falldue.Handle(q, kind, func(context.Context, falldue.Task[int]) error { return nil })
	}
	stop := runUntil(t, q)
	waitFor(t, "the warning", func() bool { return strings.Contains(log.String(), "kind=forgotten queue=default") })
	stop()
	if strings.Contains(log.String(), "kind=sent") {
		t.Errorf("the log has a kind whose queue is worked on: %s", log.String())
	}
}
