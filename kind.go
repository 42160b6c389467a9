package falldue

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/internal/storable"
)

// Kind is a kind of task: a name, the type A of the tasks' arguments, and a
// configuration. Make it once with [NewKind], as a package variable shared by
// the code that enqueues tasks and the code that handles them.
type Kind[A any] struct{ *kind }

// KindConfig is the configuration of a kind. The zero value is ready for use.
type KindConfig struct {
	// Policy is the retry policy. It decides when a failed task is retried, and when it is dead. Each worker uses the
	// policy in its own build, so a change applies to waiting tasks as soon as new workers run, without writing a row.
	// Package ops changes the policy of running workers. Defaults to Config.DefaultPolicy of the worker.
	Policy backoff.Policy
	// Queue is the name of the queue in which tasks of this kind wait. Only workers that
	// list the queue in Config.Queues run them. Defaults to "default" ([DefaultQueue]).
	Queue string
	// Priority orders the tasks of a queue, -32,768 to 32,767. Tasks with a lower
	// number run first. Defaults to 0.
	Priority int
	// Timeout is how long a handler can run before its context ends with the cause
	// [ErrTimeout]. The return value of a late handler still counts. Config.StuckTimeout is for
	// handlers that do not return. Defaults to 0: no limit.
	Timeout time.Duration
	// ImmediateLostRetries is a number of attempts, counted from the first. If a worker dies during one of them, the task
	// is retried as soon as the lease expires, without the policy's delay. Later attempts wait for the delay, so that a
	// task that kills its workers is retried slowly. While one of these first attempts runs, the state of the task is
	// [StateSnoozed]. Defaults to 0: a lost task waits for the end of its lease and for the delay.
	ImmediateLostRetries int
	// DoneRetention is how long done tasks stay in the table with their results: up to 36,500
	// days, [Forever], or [DeleteImmediately]. Defaults to Config.DoneRetention of the worker.
	// The comment of Config.DoneRetention explains when other workers delete tasks of the kind.
	DoneRetention time.Duration
	// MaxDone is how many done tasks of the kind stay in each queue, up to 100,000. If it is set, DoneRetention
	// defaults to Forever. Defaults to Config.MaxDone of the worker.
	MaxDone int
	// DeadRetention is how long dead tasks stay in the table. It takes the same values as DoneRetention. When a
	// dead task that halts a sequence is deleted, the sequence continues ([OrderLimit.HaltOnDeath]). Defaults to
	// Config.DeadRetention of the worker.
	DeadRetention time.Duration
	// CancelledRetention is how long cancelled tasks stay in the table. It takes the same values as
	// DoneRetention. Defaults to the kind's DeadRetention, or else Config.CancelledRetention of the
	// worker.
	CancelledRetention time.Duration
	// Limits limits the tasks of this kind, in all queues together. All workers must have
	// the same limits, since each applies its own. Defaults to none.
	Limits []Limit
	// Weight returns the weight of a tenant when workers serve tenants in turn. The tenant is the first part of the task
	// key, such as "tenant=42", or the whole key if it has no parts, or "" without a key. While tasks of two tenants
	// with the weights 3 and 1 wait, a worker starts three tasks of the first for one of the second. A weight below 1
	// counts as 1, and above 1,000 as 1,000. Workers call Weight in each claim, from several goroutines, so it must
	// return within microseconds. Defaults to nil: all weights are 1.
	Weight func(tenant string) int
}

// kind is a Kind without the type of its arguments.
type kind struct {
	name string
	KindConfig
	keyOf func(args any) string // nil if its tasks have no key unless options say so
	err   error                 // why the kind is invalid; reported when it is first used
}

// NewKind returns a kind. An invalid name or configuration is reported later,
// with an error that wraps [ErrInvalid]: by the methods that enqueue, and by
// [Queue.Run] if the kind has a handler.
func NewKind[A any](name string, cfg KindConfig) Kind[A] {
	if cfg.Queue == "" {
		cfg.Queue = DefaultQueue
	}
	return Kind[A]{&kind{name: name, KindConfig: cfg, err: validKind(name, cfg)}}
}

// KeyedBy returns a copy of the kind that makes the task key from the arguments, such as the
// customer of an order, so callers can't forget the key. EnqueueOptions.Key takes precedence unless
// it is "". A task for which the function returns "" has no key. Existing tasks keep their keys,
// even if [RetryOptions].Args replaces their arguments. If [ConflictReplace] replaces the arguments
// of a task, the task gets the key of the new arguments.
func (k Kind[A]) KeyedBy(key func(args A) string) Kind[A] {
	if k.kind == nil {
		return k
	}
	keyed := *k.kind
	keyed.keyOf = func(args any) string {
		a, _ := args.(A) // nil, if A is an interface type
		return key(a)
	}
	return Kind[A]{&keyed}
}

// KeyOf returns a key with named parts. The pairs are a name, its value, the next name, and so on: KeyOf("tenant",
// a.Tenant, "endpoint", a.Endpoint). A limit with PerKey("tenant") counts the tasks of each tenant. A [Subject] or a
// filter with the key KeyOf("tenant", "42") selects the tasks of a tenant, whatever the other parts of their keys
// are. Several parts select the tasks whose keys have these parts next to each other.
//
// The text of the key is "tenant=42/endpoint=7", up to 128 characters. A value becomes its hash if it has more than
// 40 characters, a slash, or characters other than visible ASCII. KeyOf panics if a name has no value, or is not a
// letter followed by up to 31 of A-Z a-z 0-9 . _ -.
func KeyOf(pairs ...string) string {
	if len(pairs)%2 != 0 {
		panic(fmt.Sprintf("falldue: KeyOf(%q): the last name has no value", pairs))
	}
	var parts []string
	for pair := range slices.Chunk(pairs, 2) {
		if err := storable.CheckPart(pair[0]); err != nil {
			panic("falldue: KeyOf: " + err.Error())
		}
		parts = append(parts, storable.KeyOf(pair[0], pair[1]))
	}
	return strings.Join(parts, "/")
}

func validKind(name string, cfg KindConfig) error {
	if err := validName("kind", name); err != nil {
		return err
	}
	if err := validName("queue", cfg.Queue); err != nil {
		return fmt.Errorf("kind %q: %w", name, err)
	}
	if err := validPriority(cfg.Priority); err != nil {
		return fmt.Errorf("kind %q: %w", name, err)
	}
	if cfg.Timeout < 0 {
		return invalid("Timeout %v of kind %q: must be 0 or more", cfg.Timeout, name)
	}
	if cfg.ImmediateLostRetries < 0 {
		return invalid("ImmediateLostRetries %d of kind %q: must be 0 or more", cfg.ImmediateLostRetries, name)
	}
	if err := validRetentions(fmt.Sprintf("kind %q", name), cfg.DoneRetention, cfg.DeadRetention, cfg.CancelledRetention); err != nil {
		return err
	}
	if err := validMaxDone(fmt.Sprintf("kind %q", name), cfg.MaxDone); err != nil {
		return err
	}
	if err := validLimits("kind", name, cfg.Limits); err != nil {
		return err
	}
	if err := cfg.Policy.Err(); err != nil {
		return fmt.Errorf("%w: policy of kind %q: %w", ErrInvalid, name, err)
	}
	return nil
}

// Name returns the name of the kind.
func (k Kind[A]) Name() string { return k.made().name }

// Config returns the configuration of the kind, with its queue filled in.
func (k Kind[A]) Config() KindConfig { return k.made().KindConfig }

// made returns the kind, or for an empty Kind one with an error.
func (k Kind[A]) made() kind {
	if k.kind == nil {
		return kind{err: invalid("the Kind is empty: make it with NewKind")}
	}
	return *k.kind
}

func validPriority(p int) error {
	if p < -32768 || p > 32767 {
		return invalid("priority %d: must be -32,768 to 32,767", p)
	}
	return nil
}
