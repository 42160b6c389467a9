package falldue

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"os"
	"strings"
	"time"

	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/internal/pattern"
	"github.com/falldue/falldue/internal/run"
	"github.com/falldue/falldue/internal/storable"
	"github.com/falldue/falldue/internal/words"
	"github.com/falldue/falldue/sqlgen"
)

// maxDelay is the longest delay of a task.
const maxDelay = sqlgen.MaxDelay * time.Second

// longestDelay is what errors call maxDelay: 36,500 days.
var longestDelay = words.Count(int64(maxDelay/(24*time.Hour)), "day")

// DefaultQueue is the name of the queue of kinds that set no queue.
const DefaultQueue = "default"

// Config is the configuration of a Queue. The zero value is ready for use.
type Config struct {
	// Prefix is the beginning of the names of falldue's tables. It has up to 40
	// letters, digits and underscores, and does not start with pg_ on PostgreSQL or
	// sqlite_ on SQLite. Defaults to "falldue_".
	Prefix string
	// Schema is the PostgreSQL schema of the tables. Migrate creates it if it does
	// not exist. It has up to 63 bytes, contains no control character, semicolon
	// or --, and does not start with pg_. Defaults to the connection's search path.
	// It must be empty on other engines.
	Schema string

	// Release names the release of the program, such as v1.4.2, in lists of workers. Defaults to the
	// version of the program's module, or the revision that it was built from.
	Release string
	// Queues configures the queues of the worker, by name. Run claims tasks only from these queues: list the queue
	// "default" too if the worker should run its tasks. A name that ends with "*", such as "tenant:*", is a pattern: it
	// matches queues with that beginning and at least one more character, even those that appear while the worker runs. If
	// several entries match a queue, a name takes precedence over a pattern, and a longer pattern over a shorter one. The
	// queues of a pattern share its Concurrency: free handlers go to the queues in turn. The pattern's Limits apply to
	// each of its queues separately. Defaults to only the queue "default".
	Queues map[string]QueueConfig
	// Concurrency is the number of handlers that run concurrently for each queue
	// that does not set its own: 1 to 100,000. Defaults to 10.
	Concurrency int
	// MaxPrefetch is the maximum number of tasks that a worker claims before a handler is free for them, for each queue
	// that does not set its own: up to 1,000. Defaults to 1,000. A negative value disables claiming ahead.
	//
	// A worker claims ahead as many tasks as its handlers finish in 20 milliseconds, estimated from recent handlers of the
	// same kind. A worker never claims a last attempt ahead, and releases a task that has waited one second for a handler.
	MaxPrefetch int
	// PollInterval is the time between two searches for waiting tasks that the worker has not seen: 1 millisecond to 1
	// hour, plus up to a tenth at random. A search is one statement for all queues, or a few on MySQL and MariaDB. A
	// task that the worker has seen starts when it falls due, not at the next search. A worker that listens searches,
	// too, since plain SQL inserts send no notification. Defaults to 1 second.
	//
	// Between searches, a worker polls for new task IDs. A shorter PollInterval therefore hardly speeds up the start of
	// tasks that other processes enqueue: docs/latency.md lists the times.
	PollInterval time.Duration
	// Lease is how long a task belongs to the worker that claimed it, if that worker does not extend the lease: 1
	// second to 24 hours. When the lease has expired, the task waits for its policy's delay, and is then due for any
	// worker ([KindConfig].ImmediateLostRetries skips the delay). Workers extend their leases every third of this time.
	// Defaults to 1 minute.
	Lease time.Duration
	// ShutdownTimeout is how long Run waits for running handlers after its context
	// has ended, before it cancels their contexts. A negative value cancels them
	// immediately. Defaults to 30 seconds.
	ShutdownTimeout time.Duration
	// StuckTimeout is how long a handler can continue after its context has ended, for whatever reason: up to 24 hours.
	// After that the worker gives the handler up: another handler can start, the run ends with an error that wraps
	// [ErrStuck] and contains the handler's stack, and Run does not wait for the handler. Go cannot stop the handler, so
	// it may continue during the next attempt. A later DoneTx returns [ErrLeaseLost], and limits no longer count the
	// handler. Defaults to 0: the worker waits for every handler.
	StuckTimeout time.Duration
	// MaxStuck is how many handlers that were given up can continue at the same time. With one more, Run stops and
	// returns an error that wraps [ErrStuck], so that the process can restart. Defaults to 10. A negative value means 0.
	MaxStuck int
	// OnStuck decides the outcome of a task whose handler is given up. It returns the error with which the run ends,
	// such as [Discard] of err. If it returns nil, the run ends with err: the attempt fails or, if the worker is stopping,
	// does not count. Defaults to nil: the attempt fails.
	OnStuck func(run RunInfo, err error) error
	// DoneRetention is how long done tasks stay in the table with their results, unless their kind sets its own
	// ([KindConfig]): up to 36,500 days, [Forever], or [DeleteImmediately]. Defaults to DeleteImmediately.
	//
	// A worker deletes finished tasks of its queues about once a minute. It deletes tasks of the kinds that it handles,
	// and tasks of kinds that no worker in the table of workers has handled for an hour. The retentions of Config apply to
	// kinds without a worker, but done tasks of such kinds are kept if Config.DoneRetention is not set. If workers that
	// handle a kind have different retentions, the shortest applies.
	DoneRetention time.Duration
	// MaxDone is how many done tasks of a kind stay in each queue, up to 100,000. Workers delete older tasks
	// about once a minute. If MaxDone is set, DoneRetention defaults to Forever. Defaults to 0: no limit.
	MaxDone int
	// DeadRetention is how long dead tasks stay in the table. It takes the same values as
	// DoneRetention. When a dead task that halts a sequence is deleted, the sequence continues
	// ([OrderLimit.HaltOnDeath]). Defaults to Forever.
	DeadRetention time.Duration
	// CancelledRetention is how long cancelled tasks stay in the table. It takes the same values as
	// DoneRetention. Defaults to DeadRetention.
	CancelledRetention time.Duration
	// DefaultPolicy is the retry policy of this worker for kinds that set none. Package
	// backoff/policyflags reads it from the command line and the environment. Defaults to
	// backoff.Zizq: 15 s + n⁴, 25 retries.
	DefaultPolicy backoff.Policy
	// MaxPayload is the largest size of a payload or a result, in bytes, before the Codec
	// encodes it: up to 64 MiB. Defaults to 1 MiB.
	MaxPayload int
	// Codec encodes payloads and results on their way into the table and decodes them on their way out, to encrypt or
	// compress them. Defaults to nil: data is stored without changes.
	Codec Codec

	// Notifications configures LISTEN and NOTIFY, which only PostgreSQL has. With them, a worker starts a task of another
	// process as soon as the task is committed. Defaults to the zero value: this process notifies workers that listen, and
	// its own worker polls.
	Notifications Notifications

	// TransactionPooling declares a PostgreSQL connection pooler that assigns a session to each transaction, such as
	// PgBouncer with pool_mode=transaction. New detects such a pooler, unless the *sqlx.DB has a single connection, all
	// its other connections are in use, or the pooler happens to assign the same sessions again. The driver must send a
	// statement and its arguments in one step: lib/pq does with binary_parameters=yes in its DSN, and pgx with
	// default_query_exec_mode=exec. Defaults to false.
	TransactionPooling bool

	// NoHistory turns off the worker's history: how many runs ended, how they ended and how long they took, by
	// minute, queue and kind. The [web page] and [ops.Ops.History] show the history. The history costs
	// a worker one transaction for each minute in which it has run tasks. Defaults to false.
	//
	// [web page]: https://pkg.go.dev/github.com/falldue/falldue/dash
	// [ops.Ops.History]: https://pkg.go.dev/github.com/falldue/falldue/ops#Ops.History
	NoHistory bool

	// Name is the name of the worker in claimed_by and in recorded attempts: up to
	// 27 printable ASCII characters. A random part is appended, so that no two
	// workers have the same name. Defaults to the host name and the process ID.
	Name string
	// Hooks are functions that the worker calls after runs and statements, for metrics.
	// Defaults to none.
	Hooks Hooks
	// Logger logs events that the API does not report: lost leases, policies that cannot
	// be read, overdue tasks, a database that does not answer. Defaults to slog.Default().
	Logger *slog.Logger
}

// QueueConfig is the configuration of one of a worker's queues. The zero value
// is ready for use.
type QueueConfig struct {
	// Concurrency is the number of handlers that run concurrently for the tasks of
	// the queue: 1 to 100,000. Defaults to [Config].Concurrency.
	Concurrency int
	// MaxPrefetch is the greatest number of tasks of the queue that are claimed before
	// a handler is free for them: up to 1,000. A negative value disables claiming
	// ahead. Defaults to [Config].MaxPrefetch.
	MaxPrefetch int
	// Limits limits the tasks of the queue, of all kinds together. All workers must have
	// the same limits, since each applies its own. Defaults to none.
	Limits []Limit
	// LowPriorityShare is the percentage of less urgent tasks among the tasks that a worker starts while more urgent ones
	// wait: 0 to 50. With 10, nine of ten tasks have the lowest priority number, and one has a higher number. Among the
	// higher numbers, nine of ten tasks have the lowest again. Defaults to 0: less urgent tasks wait.
	LowPriorityShare int
}

func (c Config) withDefaults() Config {
	if c.Prefix == "" {
		c.Prefix = "falldue_"
	}
	if c.Concurrency == 0 {
		c.Concurrency = 10
	}
	if c.MaxPrefetch == 0 {
		c.MaxPrefetch = run.MaxPrefetch
	}
	if len(c.Queues) == 0 {
		c.Queues = map[string]QueueConfig{DefaultQueue: {}}
	}
	c.Queues = maps.Clone(c.Queues)
	for name, queue := range c.Queues {
		queue.Concurrency = cmp.Or(queue.Concurrency, c.Concurrency)
		queue.MaxPrefetch = cmp.Or(queue.MaxPrefetch, c.MaxPrefetch)
		c.Queues[name] = queue
	}
	if c.PollInterval == 0 {
		c.PollInterval = time.Second
	}
	if c.Lease == 0 {
		c.Lease = time.Minute
	}
	if c.ShutdownTimeout == 0 {
		c.ShutdownTimeout = 30 * time.Second
	}
	switch {
	case c.MaxStuck == 0:
		c.MaxStuck = 10
	case c.MaxStuck < 0:
		c.MaxStuck = 0
	}
	if c.MaxPayload == 0 {
		c.MaxPayload = 1 << 20
	}
	if c.Name == "" {
		host, _ := os.Hostname()
		c.Name = fmt.Sprintf("%.19s:%d", strings.Map(printable, host), os.Getpid())
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c
}

func (c Config) validate(s dialect.Server) error {
	if err := c.tables().Validate(s); err != nil {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	for name, queue := range c.Queues {
		if err := pattern.Check(name); err != nil {
			return invalid("queue %q: %w", name, err)
		}
		if err := validName("queue", pattern.Prefix(name)); err != nil && name != "*" {
			return err
		}
		if n := queue.Concurrency; n < 1 || n > 100_000 {
			return invalid("Concurrency %d of queue %q: must be 1 to 100,000", n, name)
		}
		if err := validLimits("queue", name, queue.Limits); err != nil {
			return err
		}
		if ordered(queue.Limits) {
			return invalid("InOrder() on queue %q: must be set on a kind, not on a queue", name)
		}
		if n := queue.LowPriorityShare; n < 0 || n > 50 {
			return invalid("LowPriorityShare %d of queue %q: must be 0 to 50", n, name)
		}
		if n := queue.MaxPrefetch; n > run.MaxPrefetch {
			return invalid("MaxPrefetch %d of queue %q: must be at most 1,000, or negative for none", n, name)
		}
	}
	if strings.Map(printable, c.Name) != c.Name || len(c.Name) > 27 {
		return invalid("worker name %q: must be at most 27 printable ASCII characters", c.Name)
	}
	for _, r := range []struct {
		name     string
		value    time.Duration
		min, max time.Duration
	}{
		{"PollInterval", c.PollInterval, time.Millisecond, time.Hour},
		{"Lease", c.Lease, time.Second, 24 * time.Hour},
		{"StuckTimeout", c.StuckTimeout, 0, 24 * time.Hour},
	} {
		if r.value < r.min || r.value > r.max {
			return invalid("%s %v: must be %v to %v", r.name, r.value, r.min, r.max)
		}
	}
	if err := validRetentions("Config", c.DoneRetention, c.DeadRetention, c.CancelledRetention); err != nil {
		return err
	}
	if err := validMaxDone("Config", c.MaxDone); err != nil {
		return err
	}
	if err := c.DefaultPolicy.Err(); err != nil {
		return fmt.Errorf("%w: DefaultPolicy: %w", ErrInvalid, err)
	}
	if err := c.Notifications.validate(s); err != nil {
		return err
	}
	if c.MaxPayload < 2 || c.MaxPayload > 64<<20 {
		return invalid("MaxPayload %d: must be 2 bytes to 64 MiB", c.MaxPayload)
	}
	return nil
}

func (c Config) tables() dialect.Tables { return dialect.Tables{Schema: c.Schema, Prefix: c.Prefix} }

// workerID returns a new ID for a worker: its name and a random part.
func (c Config) workerID() string {
	var random [6]byte
	_, _ = rand.Read(random[:]) // never fails
	return c.Name + "/" + hex.EncodeToString(random[:])
}

func printable(r rune) rune {
	if r < ' ' || r > '~' {
		return -1
	}
	return r
}

// validName checks the name of a kind or a queue.
func validName(what, name string) error {
	if err := storable.CheckName(what, name); err != nil {
		return invalid("%w", err)
	}
	return nil
}

// Special values for the retentions of [Config] and [KindConfig].
const (
	// Forever keeps finished tasks until you delete them ([Queue.Delete]).
	Forever time.Duration = math.MaxInt64
	// DeleteImmediately keeps no finished tasks. The statement that records the end of a done
	// task deletes the task with its result. Workers delete dead and cancelled tasks within
	// about a second.
	DeleteImmediately time.Duration = -1
)

// validRetentions checks the retentions of owner.
func validRetentions(owner string, done, dead, cancelled time.Duration) error {
	for _, r := range []struct {
		field string
		value time.Duration
	}{{"DoneRetention", done}, {"DeadRetention", dead}, {"CancelledRetention", cancelled}} {
		if d := r.value; d != Forever && d != DeleteImmediately && (d < 0 || d > maxDelay) {
			return invalid("%s %v of %s: must be Forever, DeleteImmediately, or a duration up to %s", r.field, d, owner, longestDelay)
		}
	}
	return nil
}

// maxMaxDone is the greatest MaxDone. The cleaner reads as many entries of the index once a minute.
const maxMaxDone = 100_000

// validMaxDone checks the MaxDone of owner.
func validMaxDone(owner string, most int) error {
	if most < 0 || most > maxMaxDone {
		return invalid("MaxDone %d of %s: must be 0 to 100,000", most, owner)
	}
	return nil
}

// retention returns how long finished tasks of the kind stay in the table.
func (k KindConfig) retention(c Config) run.Retention {
	most, done := cmp.Or(k.MaxDone, c.MaxDone), DeleteImmediately
	if most > 0 {
		done = Forever
	}
	return run.Retention{
		MaxDone:   most,
		Done:      kept(cmp.Or(k.DoneRetention, c.DoneRetention, done)),
		Dead:      kept(cmp.Or(k.DeadRetention, c.DeadRetention, Forever)),
		Cancelled: kept(cmp.Or(k.CancelledRetention, k.DeadRetention, c.CancelledRetention, c.DeadRetention, Forever)),
	}
}

// retentionOfOthers returns the retention of finished tasks of kinds that the worker does not handle. A worker that
// handles such a kind may keep its done tasks.
func (c Config) retentionOfOthers() run.Retention {
	r := KindConfig{}.retention(c)
	if c.DoneRetention == 0 {
		r.Done = run.Forever
	}
	return r
}

// kept returns a retention in the cleaner's form.
func kept(d time.Duration) time.Duration {
	switch d {
	case Forever:
		return run.Forever
	case DeleteImmediately:
		return 0
	}
	return d
}
