package systemtest

import (
	"cmp"
	"context"
	"crypto/sha256"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
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

// A setting is something that makes a session unusual: a parameter of the driver, or a statement for the server.
type setting struct{ name, param, set string }

func (s setting) String() string { return s.param + s.set }

// driverParams has parameters of drivers.
var driverParams = map[string][]string{
	testdb.Postgres: {"binary_parameters=yes", "client_encoding=LATIN1", "connect_timeout=1"},
	testdb.MySQL: {"parseTime=true", "parseTime=true&loc=America%2FSt_Johns", "clientFoundRows=true", "interpolateParams=true", "multiStatements=true", "columnsWithAlias=true",
		"rejectReadOnly=true", "timeTruncate=1s", "compress=true", "charset=latin1", "charset=utf8mb3,utf8", "charset=utf8mb4", "collation=utf8mb4_turkish_ci", "maxAllowedPacket=65536", "checkConnLiveness=false"},
	testdb.SQLite: {"_txlock=deferred", "_time_format=sqlite", "_time_integer_format=unix", "_inttotime=1", "_texttotime=1", "_timezone=America%2FSt_Johns", "cache=shared"},
}

// settingValues has values of variables of which the server lists none.
var settingValues = map[string]map[string][]string{
	testdb.Postgres: {
		"DateStyle": {"SQL, DMY", "German", "Postgres, MDY"}, "TimeZone": {"Australia/Lord_Howe", "America/St_Johns", "<+1337>-13:37"}, "search_path": {"nowhere", "pg_catalog, public", ""},
		"client_encoding": {"LATIN1", "SQL_ASCII"}, "lc_numeric": {"C.UTF-8"}, "application_name": {"It's\\"}, "role": {"pg_monitor"}, "statement_timeout": {"1000"},
	},
	testdb.MySQL: {
		"autocommit": {"0"}, "sql_select_limit": {"1000"}, "auto_increment_increment": {"7"}, "max_join_size": {"1000"}, "sql_safe_updates": {"1"},
		"sql_mode":  {"", "ANSI", "TRADITIONAL", "ANSI,TRADITIONAL,NO_BACKSLASH_ESCAPES,PAD_CHAR_TO_FULL_LENGTH,TIME_TRUNCATE_FRACTIONAL,HIGH_NOT_PRECEDENCE,NO_AUTO_VALUE_ON_ZERO,NO_UNSIGNED_SUBTRACTION", "EMPTY_STRING_IS_NULL", "ORACLE,PAD_CHAR_TO_FULL_LENGTH,SIMULTANEOUS_ASSIGNMENT,TIME_ROUND_FRACTIONAL", "MSSQL", "REAL_AS_FLOAT,NO_ZERO_DATE"},
		"time_zone": {"+09:30", "-03:30", "America/St_Johns"}, "collation_connection": {"utf8mb4_bin", "utf8mb4_turkish_ci", "utf8mb4_uca1400_ai_cs", "utf8mb4_0900_as_cs", "latin1_bin"},
		"character_set_client": {"latin1", "utf8mb3"}, "character_set_connection": {"latin1", "binary"}, "character_set_results": {"latin1", "binary", "null"}, "default_storage_engine": {"MyISAM", "MEMORY"}, "enforce_storage_engine": {"MyISAM"},
		"transaction_isolation": {"READ-UNCOMMITTED", "READ-COMMITTED", "SERIALIZABLE"}, "completion_type": {"CHAIN", "RELEASE"}, "binlog_format": {"STATEMENT", "MIXED"}, "lc_messages": {"de_DE"}, "lc_time_names": {"de_DE"}, "default_collation_for_utf8mb4": {"utf8mb4_general_ci"},
		"max_statement_time": {"0.000001"}, "max_execution_time": {"1000"}, "session_track_gtids": {"ALL_GTIDS"}, "session_track_transaction_info": {"CHARACTERISTICS"}, "resultset_metadata": {"NONE"}, "use_secondary_engine": {"FORCED"},
	},
	testdb.SQLite: {
		"synchronous": {"full"}, "foreign_keys": {"1"}, "case_sensitive_like": {"1"}, "recursive_triggers": {"1"}, "query_only": {"1"}, "defer_foreign_keys": {"1"}, "ignore_check_constraints": {"1"}, "legacy_alter_table": {"1"},
		"reverse_unordered_selects": {"1"}, "automatic_index": {"0"}, "count_changes": {"1"}, "short_column_names": {"0"}, "full_column_names": {"1"}, "empty_result_callbacks": {"1"}, "cell_size_check": {"1"}, "secure_delete": {"1"}, "temp_store": {"memory"},
		"cache_size": {"1"}, "mmap_size": {"268435456"}, "trusted_schema": {"0"}, "writable_schema": {"1"}, "read_uncommitted": {"1"}, "busy_timeout": {"0"},
		"encoding": {"'UTF-16'"}, "page_size": {"512", "65536"}, "auto_vacuum": {"full"}, "soft_heap_limit": {"1"}, "hard_heap_limit": {"1000000"}, "threads": {"4"}, "max_page_count": {"20"}, "cache_spill": {"0"}, "journal_size_limit": {"0"}, "wal_autocheckpoint": {"1"}, "analysis_limit": {"1"},
	},
}

func init() {
	settingValues[testdb.MariaDB], settingValues[testdb.TiDB] = settingValues[testdb.MySQL], settingValues[testdb.MySQL]
	driverParams[testdb.MariaDB], driverParams[testdb.TiDB] = driverParams[testdb.MySQL], driverParams[testdb.MySQL]
}

var (
	// leftOut are variables for the server's own log, replication's sessions and debuggers, some that make each statement
	// slow, and one that ends idle connections after a millisecond, before any statement could ask for its value.
	leftOut = regexp.MustCompile(`(?i)^(log_|slow_|long_query|debug_|trace_|transaction_(isolation|read_only|deferrable)$|geqo_|jit_|idle_session|exit_on|force_parallel|wsrep_|gtid|pseudo_|original_|immediate_server|insert_id|last_insert_id|identity|timestamp$|rand_seed|server_id|(error|warning)_count|statement_id|sql_slave|system_versioning_asof|session_track_system)`)
	// withoutMost are variables for memory and costs, of which the machine does not have the greatest.
	withoutMost = regexp.MustCompile(`size|buff|mem|len|block|chunk|cost|factor`)
)

// settingsOf returns settings of an engine: those above, and extremes of all variables that its server lists, or of some.
func settingsOf(t *testing.T, db *sqlx.DB, engine string, random *rand.Rand) (list []setting) {
	t.Helper()
	for _, param := range driverParams[engine] {
		name, _, _ := strings.Cut(param, "=")
		list = append(list, setting{name: name, param: param})
	}
	values := maps.Clone(settingValues[engine])
	listed := listedValues(t, db, engine)
	for _, name := range slices.Sorted(maps.Keys(listed)) {
		of := listed[name]
		if !all() && len(of) > 0 {
			of = of[:random.IntN(8)/7] // none, mostly
		}
		if !leftOut.MatchString(name) || engine != testdb.Postgres && strings.HasPrefix(name, "transaction_") {
			values[name] = append(slices.Clone(values[name]), of...)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		for _, value := range values[name] {
			set := "set " + name + " = " + value
			if _, err := strconv.ParseFloat(value, 64); engine == testdb.SQLite {
				set = "pragma " + name + "(" + value + ")"
			} else if name == "search_path" && value != "" {
				set = "set search_path = " + value
			} else if err != nil && value != "null" {
				set = "set " + name + " = '" + strings.ReplaceAll(strings.ReplaceAll(value, "'", "''"), `\`, map[bool]string{true: `\`, false: `\\`}[engine == testdb.Postgres]) + "'"
			}
			if strings.Contains(value, "=") {
				name += " " + value // several switches go together
			}
			list = append(list, setting{name: name, set: set})
		}
	}
	return list
}

// listedValues asks a server for its variables, and returns values for them.
func listedValues(t *testing.T, db *sqlx.DB, engine string) map[string][]string {
	t.Helper()
	query := map[string]string{
		testdb.Postgres: "select name, setting, coalesce(min_val, ''), coalesce(max_val, ''), coalesce(array_to_string(enumvals, ','), '') from pg_settings where context in ('user', 'superuser')",
		testdb.MySQL:    "select variable_name, variable_value, min_value, max_value, if(variable_value in ('ON', 'OFF') and max_value = '0', 'ON,OFF', '') from performance_schema.session_variables join performance_schema.variables_info using (variable_name)",
		testdb.MariaDB:  "select lower(variable_name), session_value, coalesce(numeric_min_value, ''), coalesce(numeric_max_value, ''), if(variable_type in ('ENUM', 'SET', 'BOOLEAN'), coalesce(enum_value_list, ''), '') from information_schema.system_variables where variable_scope = 'SESSION' and read_only = 'NO'",
	}[engine]
	if query == "" {
		return nil
	}
	rows, err := db.QueryContext(t.Context(), query)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	list := map[string][]string{}
	for rows.Next() {
		var name, current, least, most, enum string
		if err := rows.Scan(&name, &current, &least, &most, &enum); err != nil {
			t.Fatal(err)
		}
		values := strings.Split(enum, ",")
		switch {
		case strings.Contains(current, "=on") || strings.Contains(current, "=off"): // switches of the optimizer
			values = nil
			for _, one := range strings.Split(current, ",") {
				name, is, _ := strings.Cut(one, "=")
				values = append(values, name+"="+map[string]string{"on": "off", "off": "on"}[is])
			}
		case engine == testdb.Postgres && least == "" && (current == "on" || current == "off") && enum == "":
			values = []string{"on", "off"}
		case least != "" && most != least:
			values = []string{least, "1"}
			if !withoutMost.MatchString(name) {
				values = append(values, most)
			}
		}
		slices.Sort(values)
		list[name] = slices.DeleteFunc(slices.Compact(values), func(v string) bool { return v == "" || strings.EqualFold(v, current) })
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return list
}

// unusual opens connections with settings, which they have if odd is set.
type unusual struct {
	driver driver.Driver
	dsn    string
	with   []setting
	odd    *atomic.Bool
}

func (s unusual) Driver() driver.Driver { return s.driver }

func (s unusual) Connect(ctx context.Context) (driver.Conn, error) {
	dsn := s.dsn
	if s.odd.Load() {
		for _, one := range s.with {
			join := "?"
			if strings.Contains(dsn, "?") {
				join = "&"
			}
			if one.param != "" {
				dsn += join + one.param
			}
		}
	}
	c, err := s.driver.Open(dsn)
	for _, one := range s.with {
		if err == nil && one.set != "" && s.odd.Load() {
			if _, err = c.(driver.ExecerContext).ExecContext(ctx, one.set, nil); err != nil {
				_ = c.Close()
				err = unsettable{one, err}
			}
		}
	}
	return c, err
}

// unsettable is the error for a setting that the server refuses.
type unsettable struct {
	setting
	error
}

// names reports whether a text names one of the settings, as in "read-only transaction" for default_transaction_read_only.
func names(text string, with []setting) bool {
	text = strings.ToLower(text)
	return slices.ContainsFunc(with, func(s setting) bool {
		if says := otherWords[s.name]; says != "" && regexp.MustCompile(says).MatchString(text) {
			return true
		}
		for _, word := range strings.Split(strings.ToLower(s.name), "_") {
			if !strings.Contains(text, word) && !slices.Contains([]string{"default", "max", "session", "sql", "use", ""}, word) {
				return false
			}
		}
		return true
	})
}

// otherWords are the words of servers for settings.
var otherWords = map[string]string{
	"search_path": "no schema has been selected|tables are missing|pg_catalog", "query_only": "readonly database", "charset": "character_set", "role": "permission denied",
	"enforce_storage_engine": "no_engine_substitution", "collation_connection": "character_set_connection is latin1", "max_page_count": "database or disk is full",
	"tx_read_only": "read only transaction", "statement_timeout": "canceling statement due to user request",
}

// A trial does a round of work in sessions with settings, and compares with what came of it in usual sessions.
type trial struct {
	engine, want string
	driver       driver.Driver
}

// errRefused stands for an error or a log line that names a setting.
var errRefused = errors.New("refused")

// run does the work in sessions with settings and returns its error, errRefused, or an error if its outcome is not
// the usual one. If later is set, only connections that are opened after Migrate have the settings.
func (tr trial) run(t *testing.T, later bool, with []setting) (string, error) {
	odd := new(atomic.Bool)
	odd.Store(!later)
	pool := sqlx.NewDb(sql.OpenDB(unusual{tr.driver, testdb.DSN(t, tr.engine), with, odd}), testdb.Drivers(tr.engine)[0])
	defer func() { _ = pool.Close() }()
	pool.SetMaxOpenConns(4)
	pool.SetMaxIdleConns(4)
	ctx, cancel := context.WithTimeout(t.Context(), testdb.Patience)
	defer cancel()
	log := &loud{heard: func(line string) {
		if names(line, with) {
			cancel() // a loop of the worker logs it, and would try again
		}
	}}
	got, err := func() (string, error) {
		q, err := falldue.New(pool, falldue.Config{
			DoneRetention: time.Hour, PollInterval: 20 * time.Millisecond, Logger: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelWarn})),
		})
		if err == nil {
			err = q.Migrate(ctx)
		}
		if err != nil {
			return "", err
		}
		if later {
			odd.Store(true)
			pool.SetMaxIdleConns(0) // closes those without settings
			pool.SetMaxIdleConns(4)
		}
		return work(ctx, q, pool)
	}()
	var unknown unsettable
	switch {
	case errors.As(err, &unknown):
		return got, err
	case err != nil && names(err.Error(), with), names(log.String(), with):
		return got, errRefused
	case err != nil:
		return got, fmt.Errorf("%w\n%.2000s", err, log.String())
	case tr.want != "" && got != tr.want:
		return got, fmt.Errorf("the work came out as\n%s\nand in usual sessions as\n%s", got, tr.want)
	}
	return got, nil
}

// try tries settings together, and reports those with which anything is wrong: as few as show it.
func (tr trial) try(t *testing.T, later bool, with []setting) (fine bool) {
	_, err := tr.run(t, later, with)
	var unknown unsettable
	switch {
	case errors.As(err, &unknown):
		return tr.try(t, later, slices.DeleteFunc(slices.Clone(with), func(s setting) bool { return s == unknown.setting }))
	case err != nil && len(with) > 1:
		first, second := tr.try(t, later, with[:len(with)/2]), tr.try(t, later, with[len(with)/2:])
		if errors.Is(err, errRefused) || !first || !second {
			return false
		}
	case errors.Is(err, errRefused):
		t.Logf("refused: %v (later: %v)", with, later)
		return true
	}
	if err != nil {
		t.Errorf("%v (later: %v): %v", with, later, err)
	}
	return err == nil
}

// loud is a log that tells of each line.
type loud struct {
	lockedBuilder
	heard func(line string)
}

func (l *loud) Write(p []byte) (int, error) {
	l.heard(string(p))
	return l.lockedBuilder.Write(p)
}

// work uses the features of a queue, and describes what came of it in words that are the same in each usual session.
func work(ctx context.Context, q *falldue.Queue, db *sqlx.DB) (_ string, err error) {
	w := &worked{ctx: ctx, q: q, start: time.Now(), order: map[string]int{}}
	nothing := func(context.Context, falldue.Task[string]) error { return nil }
	fail := func(_ context.Context, t falldue.Task[string]) error {
		switch {
		case t.Args == "recovers" && t.Attempt > 2, t.Args == "snoozes" && t.Fence > 1:
			return nil
		case t.Args == "snoozes":
			return falldue.Snooze(time.Millisecond)
		}
		return fmt.Errorf("no \\ ' 😀 %d", t.Attempt)
	}
	plain := w.kind("plain", falldue.KindConfig{}, func(ctx context.Context, t falldue.Task[string]) error {
		t.Progress(0.5, "half ½ 😀")
		_, err := steps.Do(ctx, t, "one", func(context.Context) (string, error) { return "1 😀", nil })
		return errors.Join(err, t.SetResult(t.Args+" \\ ' \" 😀"))
	})
	fails := w.kind("fails", falldue.KindConfig{Policy: backoff.Constant(3 * time.Hour)}, fail)
	soon := w.kind("soon", falldue.KindConfig{Policy: backoff.Polynomial(time.Millisecond, time.Millisecond, 1.5, time.Second).WithMaxAttempts(3)}, fail)
	limited := w.kind("limited", falldue.KindConfig{Limits: []falldue.Limit{falldue.AtMost(1).PerKey(), falldue.Rate(1000, time.Second)}}, nothing)
	ordered := w.kind("ordered", falldue.KindConfig{Limits: []falldue.Limit{falldue.InOrder()}}, nothing)
	var list []falldue.EnqueueParams
	for i, key := range []string{"a", "A", "a ", "ä", "😀", "\\ '", ""} {
		list = append(list, plain.Params("key "+key, falldue.EnqueueOptions{Key: key, Metadata: map[string]string{"is 😀": "\\' \""}}))
		for n := range 3 {
			list = append(list, limited.Params(fmt.Sprint("limited ", key), falldue.EnqueueOptions{Key: key, Unique: falldue.Unique{By: falldue.ByArgs(), For: time.Hour}}),
				ordered.Params(fmt.Sprint("ordered ", i, " ", n), falldue.EnqueueOptions{Key: key + "x"}))
		}
	}
	w.enqueue(list...)
	in := func(hours time.Duration) falldue.EnqueueOptions {
		return falldue.EnqueueOptions{Delay: hours * time.Hour}
	}
	w.enqueue(plain.Params("later", in(5)), plain.Params("at", falldue.EnqueueOptions{RunAt: w.start.Add(7 * time.Hour), ExpireAt: w.start.Add(9 * time.Hour)}))
	w.enqueue(soon.Params("dies"), soon.Params("recovers"), soon.Params("snoozes"), fails.Params("fails"), fails.Params("fails, too", falldue.EnqueueOptions{Policy: backoff.Linear(2*time.Hour, 4*time.Hour, 9)}))
	changed := w.enqueue(plain.Params("cancelled, and again", in(1)), plain.Params("cancelled", in(1)), plain.Params("now", in(1)))
	o := ops.New(q)
	if w.err == nil {
		w.must(q.Cancel(ctx, changed[0].ID), q.Retry(ctx, changed[0].ID), q.Cancel(ctx, changed[1].ID), o.RunNow(ctx, changed[2].ID))
	}
	for _, end := range []func(*sqlx.Tx) error{(*sqlx.Tx).Commit, (*sqlx.Tx).Rollback} {
		tx, err := db.BeginTxx(ctx, nil)
		if w.must(err); err == nil {
			_, err = plain.EnqueueTx(ctx, q, tx, "in a transaction")
			w.must(err, end(tx))
		}
	}
	ids, err := flow.Batch(plain.Params("a"), soon.Params("b")).OnFirstDeath(plain.Params("a death")).Then(plain.Params("never")).Enqueue(ctx, q)
	w.must(err)
	scheduler, err := periodic.New(q, periodic.Schedule{Name: "noon", Spec: "@every 6h", Task: plain.Params("tick")})
	if w.must(err); err == nil {
		_, err = scheduler.Tick(ctx)
		w.must(err)
		_, err = periodic.Trigger(ctx, q, "noon")
		w.must(err, q.Pause(ctx, falldue.Subject{Kind: "ordered"}), q.Resume(ctx, falldue.Subject{Kind: "ordered"}))
	}
	double, err := backoff.ParseOverride("original * 2")
	w.must(err, o.SetPolicy(ctx, falldue.Subject{Kind: "fails"}, double, ops.OverrideOptions{}))
	if w.err == nil {
		w.run(ids[2])
	}
	if w.err == nil {
		w.describe(o)
	}
	return strings.Join(w.said, "\n"), w.err
}

// worked is what came of a round of work.
type worked struct {
	ctx   context.Context
	q     *falldue.Queue
	start time.Time
	err   error // the first one
	mu    sync.Mutex
	order map[string]int // how many tasks of a sequence have run
	said  []string
}

func (w *worked) must(errs ...error) { w.err = cmp.Or(w.err, errors.Join(errs...)) }

func (w *worked) say(format string, args ...any) {
	w.said = append(w.said, fmt.Sprintf(format, args...))
}

// kind registers a kind, and notes the order in which tasks of a sequence run.
func (w *worked) kind(name string, cfg falldue.KindConfig, fn func(context.Context, falldue.Task[string]) error) falldue.Kind[string] {
	k := falldue.NewKind[string](name, cfg)
	falldue.Handle(w.q, k, func(ctx context.Context, t falldue.Task[string]) error {
		w.mu.Lock()
		if name == "ordered" {
			w.order[t.Key]++
		}
		w.say("%s runs, attempt %d, due in %v, with %q, place %d", t.Args, t.Attempt, t.DueAt.Sub(w.start).Round(time.Hour), t.Metadata, w.order[t.Key])
		w.mu.Unlock()
		return fn(ctx, t)
	})
	return k
}

func (w *worked) enqueue(tasks ...falldue.EnqueueParams) []falldue.Receipt {
	receipts, err := w.q.EnqueueMany(w.ctx, tasks...)
	w.must(err)
	for i, r := range receipts {
		if r.Existed {
			w.say("the %dth existed", i)
		}
	}
	return receipts
}

// run runs a worker until no task is due or runs, and the given one is done. It also waits for the tasks of kind soon,
// which are not due for a moment between two attempts.
func (w *worked) run(id int64) {
	ctx, stop := context.WithCancel(w.ctx)
	ended := make(chan error, 1)
	go func() { ended <- w.q.Run(ctx) }()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	active := []falldue.Phase{falldue.PhaseDue, falldue.PhaseRunning, falldue.PhaseLimited, falldue.PhaseSnoozed}
	for waits := true; waits && w.err == nil; <-tick.C {
		page, err := ops.New(w.q).Tasks(w.ctx, ops.Filter{})
		w.must(err)
		waits = slices.ContainsFunc(page.Tasks, func(t falldue.TaskInfo) bool {
			return slices.Contains(active, t.Phase) || t.ID == id && t.State != falldue.StateDone || t.Kind == "soon" && t.State == falldue.StateOpen
		})
	}
	stop()
	w.must(<-ended)
}

// describe adds what an operator sees.
func (w *worked) describe(o *ops.Ops) {
	in := func(at time.Time) time.Duration { return at.Sub(w.start).Round(time.Hour) }
	page, err := o.Tasks(w.ctx, ops.Filter{})
	w.must(err)
	for _, t := range page.Tasks {
		progress, err := w.q.Progress(w.ctx, t.ID)
		attempts, err2 := w.q.Attempts(w.ctx, t.ID)
		if w.must(err2); !errors.Is(err, falldue.ErrNotFound) {
			w.must(err)
		}
		w.say("%s %s is %s (%s) after %d attempts (%d recorded), prio %d, key %q, max %d, made in %v, from in %v, expires %v, error %q, result %s, %q, %q", t.Kind, t.Payload, t.State, t.Phase,
			t.Attempts, len(attempts), t.Priority, t.Key, t.MaxAttempts, in(t.CreatedAt), in(t.UpdatedAt), !t.ExpireAt.IsZero(), t.LastError, t.Result, t.Metadata, progress.Message)
	}
	schedules, err := periodic.List(w.ctx, w.q)
	w.must(err)
	for _, s := range schedules {
		w.say("schedule %s: next in %v, last in %v, error %v", s.Name, in(s.Next), in(s.Last), s.Err)
	}
	counts, err := o.Counts(w.ctx)
	w.must(err)
	for _, c := range counts {
		w.say("count %+v", c)
	}
	pauses, err := o.Pauses(w.ctx)
	w.must(err)
	overrides, err2 := o.Overrides(w.ctx)
	w.must(err2)
	policies, err := o.OwnPolicies(w.ctx)
	w.must(err)
	w.say("%d pauses, %d overrides, %d policies of tasks", len(pauses), len(overrides), len(policies))
	for _, filter := range []ops.HistoryFilter{{}, {Queue: "default", Kind: "plain"}} {
		_, err = o.History(w.ctx, filter)
		w.must(err)
	}
	_, err = o.Diagnose(w.ctx)
	w.must(err)
	slices.Sort(w.said)
}

// TestSettingsOfSessions: in a session with any setting that its server knows, alone and together with others, New, Migrate,
// Enqueue or the worker's log name the setting, or tasks fare as in usual sessions. The test reads the list of settings
// from the server. FALLDUE_TEST_ALL=1 tries all of them; otherwise FALLDUE_TEST_SEED selects some. Its default is fixed,
// so that a change does not fail because of a setting that has nothing to do with it.
func TestSettingsOfSessions(t *testing.T) {
	seed := cmp.Or(os.Getenv("FALLDUE_TEST_SEED"), "1")
	t.Logf("FALLDUE_TEST_SEED=%s", seed)
	testdb.Each(t, func(t *testing.T, engine string) {
		db := testdb.Open(t, engine)
		tr := trial{engine: engine, driver: db.Driver()}
		want, err := tr.run(t, false, nil)
		if err != nil {
			t.Fatal(err)
		}
		tr.want = want
		random := rand.New(rand.NewChaCha8(sha256.Sum256([]byte(seed + engine))))
		for i, group := range groups(settingsOf(t, db, engine, random), random) {
			chosen := random.IntN(2) == 0
			for _, later := range []bool{false, true} {
				if all() || later == chosen {
					t.Run(fmt.Sprintf("%d later=%v", i, later), func(t *testing.T) {
						t.Parallel()
						tr.try(t, later, group)
					})
				}
			}
		}
	})
}

// groups puts settings into random groups, in which each variable occurs once.
func groups(list []setting, random *rand.Rand) (groups [][]setting) {
	const size = 8
	random.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	for _, s := range list {
		i := slices.IndexFunc(groups, func(group []setting) bool {
			return len(group) < size && !slices.ContainsFunc(group, func(other setting) bool { return other.name == s.name })
		})
		if i < 0 {
			i, groups = len(groups), append(groups, nil)
		}
		groups[i] = append(groups[i], s)
	}
	return groups
}
