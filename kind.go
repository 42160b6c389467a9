package falldue

import (
	"fmt"
	"time"

	"github.com/falldue/falldue/backoff"
)

// Kind is a kind of task: a name, the type of its arguments, and how its tasks
// are retried. Make it once, with [NewKind], at package level: whoever enqueues
// and whoever handles share it.
type Kind[A any] struct{ kind }

// KindConfig is how the tasks of a kind behave. The zero value is ready for use.
type KindConfig struct {
	// Policy says when a failed task runs again, and when it is dead. Workers
	// evaluate the policy they were built with, so that a change acts on every
	// waiting task as soon as they run, with no row written. Defaults to
	// backoff.Zizq: 15 s + n⁴, 25 retries.
	Policy backoff.Policy
	// Queue is where tasks of this kind wait, for workers whose Config.Queues
	// names it. Defaults to [DefaultQueue].
	Queue string
	// Priority orders the tasks of a queue: lower first, -32,768 to 32,767.
	// Defaults to 0.
	Priority int
	// Timeout is how long a handler may run before its context ends, with the
	// cause [ErrTimeout]; what it returns then counts as ever. Defaults to 0: as
	// long as it likes.
	Timeout time.Duration
}

// kind is a Kind without the type of its arguments.
type kind struct {
	name string
	KindConfig
	err error // what is wrong with it, told when it is first used
}

// NewKind makes a kind. What is wrong with a name or a configuration is told
// by whoever first uses the kind: Enqueue, or Run for its handler.
func NewKind[A any](name string, cfg KindConfig) Kind[A] {
	if cfg.Queue == "" {
		cfg.Queue = DefaultQueue
	}
	return Kind[A]{kind{name: name, KindConfig: cfg, err: validKind(name, cfg)}}
}

func validKind(name string, cfg KindConfig) error {
	if err := validName("kind", name); err != nil {
		return err
	}
	if err := validName("queue", cfg.Queue); err != nil {
		return fmt.Errorf("kind %s: %w", name, err)
	}
	if err := validPriority(cfg.Priority); err != nil {
		return fmt.Errorf("kind %s: %w", name, err)
	}
	if cfg.Timeout < 0 {
		return invalid("timeout %v of kind %s; allowed are 0 and more", cfg.Timeout, name)
	}
	if err := cfg.Policy.Err(); err != nil {
		return fmt.Errorf("%w: policy of kind %s: %w", ErrInvalid, name, err)
	}
	return nil
}

// Name is the kind's name.
func (k Kind[A]) Name() string { return k.name }

// Config is how the kind's tasks behave, defaults filled in.
func (k Kind[A]) Config() KindConfig { return k.KindConfig }

func validPriority(p int) error {
	if p < -32768 || p > 32767 {
		return invalid("priority %d; allowed are -32,768 to 32,767", p)
	}
	return nil
}
