package falldue

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/sqlgen"
)

// maxDelay is the longest a task can be told to wait.
const maxDelay = sqlgen.MaxDelay * time.Second

// DefaultQueue is the queue of kinds that name none.
const DefaultQueue = "default"

// Config is how a Queue works. The zero value is ready for use.
type Config struct {
	// Prefix starts the name of each of falldue's tables: letters, digits and
	// underscores, 40 at the most, and neither pg_ on PostgreSQL nor sqlite_ on
	// SQLite in front. Defaults to "falldue_".
	Prefix string
	// Schema is the PostgreSQL schema of the tables; Migrate creates it where
	// it is missing: 63 bytes at the most, without control characters,
	// semicolons and --, and not beginning with pg_. Defaults to the
	// connection's search path. The other engines have none.
	Schema string

	// Queues names the queues that Run works on, and how; all others are left
	// alone, including "default" if it is not among them. Defaults to the queue
	// "default" alone.
	Queues map[string]QueueConfig
	// Concurrency is how many handlers may run at once for each queue that does
	// not set its own. Defaults to 10.
	Concurrency int
	// PollInterval is how often a worker looks for tasks that other processes
	// enqueued, by one statement a queue, or a few on MySQL and MariaDB. A task
	// that it knows of starts when it falls due, not at the next poll. Defaults to
	// 1 second, to 15 seconds where Listen is set; up to a tenth is added at random.
	PollInterval time.Duration
	// Lease is how long a task stays with a worker that does not answer; then
	// it falls due for others, after its policy's delay. Workers extend their
	// leases every third of it. Defaults to 1 minute, 1 second at the least.
	Lease time.Duration
	// ShutdownTimeout is how long Run lets running handlers finish after its context
	// ended, before it cancels theirs. Defaults to 30 seconds; negative is not
	// at all.
	ShutdownTimeout time.Duration
	// DoneRetention is how long tasks that are done stay in the table. Defaults to 0:
	// they are deleted at once, and a handler's result with them. A worker
	// cleans its queues about once a minute, by its own DoneRetention and DeadRetention: give
	// all workers of a queue the same.
	DoneRetention time.Duration
	// DeadRetention is how long dead and cancelled tasks stay in the table.
	// Defaults to 0: for ever.
	DeadRetention time.Duration
	// MaxPayload is the size in bytes of the largest payload that Enqueue
	// takes. Defaults to 1 MiB, 64 MiB at the most.
	MaxPayload int

	// Listen, on PostgreSQL, wakes the worker as soon as another process commits
	// tasks: package pgnotify makes it. The processes that enqueue need Notify.
	// It calls wake for each notice on channel, and once when it begins to
	// listen; it returns when ctx ends, or with an error, and is then called
	// again. Defaults to none: other processes' tasks are polled for.
	Listen func(ctx context.Context, channel string, wake func()) error
	// Notify makes Enqueue notify those who Listen. Commits of transactions that
	// notify queue up behind each other in PostgreSQL, so turn it on where
	// somebody listens. Defaults to whether Listen is set.
	Notify bool

	// Name says in claimed_by and in recorded attempts which worker ran a
	// task: 27 printable ASCII characters at the most. A random part is added,
	// so that no two workers are ever taken for one. Defaults to host and
	// process id.
	Name string
	// Logger is told of what a user cannot see otherwise: lost leases,
	// policies that do not parse, a database that does not answer. Defaults to
	// slog.Default().
	Logger *slog.Logger
}

// QueueConfig is how a worker works on one of its queues. The zero value is
// ready for use.
type QueueConfig struct {
	// Concurrency is how many handlers may run at once for the tasks of the
	// queue. Defaults to [Config].Concurrency.
	Concurrency int
}

func (c Config) withDefaults() Config {
	if c.Prefix == "" {
		c.Prefix = "falldue_"
	}
	if c.Concurrency == 0 {
		c.Concurrency = 10
	}
	if len(c.Queues) == 0 {
		c.Queues = map[string]QueueConfig{DefaultQueue: {}}
	}
	c.Queues = maps.Clone(c.Queues)
	for name, queue := range c.Queues {
		queue.Concurrency = cmp.Or(queue.Concurrency, c.Concurrency)
		c.Queues[name] = queue
	}
	if c.PollInterval == 0 {
		c.PollInterval = time.Second
		if c.Listen != nil {
			c.PollInterval = 15 * time.Second
		}
	}
	if c.Lease == 0 {
		c.Lease = time.Minute
	}
	if c.ShutdownTimeout == 0 {
		c.ShutdownTimeout = 30 * time.Second
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
		if err := validName("queue", name); err != nil {
			return err
		}
		if n := queue.Concurrency; n < 1 || n > 100_000 {
			return invalid("Concurrency %d of queue %q; allowed are 1 to 100,000", n, name)
		}
	}
	if strings.Map(printable, c.Name) != c.Name || len(c.Name) > 27 {
		return invalid("worker name %q; allowed are 27 printable ASCII characters", c.Name)
	}
	for _, r := range []struct {
		name     string
		value    time.Duration
		min, max time.Duration
	}{
		{"PollInterval", c.PollInterval, time.Millisecond, time.Hour},
		{"Lease", c.Lease, time.Second, 24 * time.Hour},
		{"DoneRetention", c.DoneRetention, 0, maxDelay},
		{"DeadRetention", c.DeadRetention, 0, maxDelay},
	} {
		if r.value < r.min || r.value > r.max {
			return invalid("%s %v; allowed are %v to %v", r.name, r.value, r.min, r.max)
		}
	}
	if (c.Listen != nil || c.Notify) && !s.Caps.Notify {
		return invalid("Listen or Notify on %s; only PostgreSQL has them", s.Name())
	}
	if c.MaxPayload < 2 || c.MaxPayload > 64<<20 {
		return invalid("MaxPayload %d; allowed are 2 bytes to 64 MiB", c.MaxPayload)
	}
	return nil
}

func (c Config) tables() dialect.Tables { return dialect.Tables{Schema: c.Schema, Prefix: c.Prefix} }

// workerID makes the name of one run of one worker.
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

var namePattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:/@-]{0,99}$`)

// validName checks the name of a kind or a queue: what every engine's index
// holds and compares alike.
func validName(what, name string) error {
	if !namePattern.MatchString(name) {
		return invalid("%s %.101q; allowed are 1 to 100 of A-Z a-z 0-9 . _ : / @ -, the first a letter or digit", what, name)
	}
	return nil
}
