package falldue

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"time"

	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/internal/options"
	"github.com/falldue/falldue/internal/storable"
	"github.com/falldue/falldue/internal/store"
)

// EnqueueOptions are settings of the tasks of one call. Without options, a task is due immediately and has the settings
// of its kind.
type EnqueueOptions struct {
	// Delay is how long the task waits before its first run: 0 to 36,500 days.
	Delay time.Duration
	// RunAt is when the task first runs, by the database's clock, in the years 1970
	// to 9000. A time in the past means immediately. RunAt and Delay cannot both be set.
	RunAt time.Time
	// Queue is the name of the queue in which the task waits. Defaults to the
	// kind's.
	Queue string
	// Priority orders the tasks of a queue, -32,768 to 32,767. Tasks with a lower
	// number run first. Set new(0) for the priority 0. Defaults to nil: the
	// kind's priority.
	Priority *int
	// Policy is a per-task policy. It is stored before the task: EnqueueTx stores it outside tx, if the pool has
	// another connection. Defaults to the kind's policy, which is not stored, so a change of the kind's policy applies
	// to the task.
	Policy backoff.Policy
	// Key is the task key: what the task belongs to, such as "customer:42". [KeyOf] makes a key with parts.
	// Up to 128 visible ASCII characters are stored as they are, any other text as its hash.
	// Defaults to "": the key of [Kind.KeyedBy], or none.
	Key string
	// MaxAttempts is the number of attempts after which the task is dead, up to
	// 2,147,483,647. Defaults to 0, the limit of the task's policy.
	MaxAttempts int
	// Timeout is how long the handler can run, as [KindConfig].Timeout is for all tasks of a kind.
	// Defaults to 0: the timeout of the kind.
	Timeout time.Duration
	// ExpireAt is the time by which the first attempt must begin, by the database's clock, in the years 1970 to 9000 and
	// after RunAt. A task that has not started by then is cancelled instead of run, as with
	// [backoff.Policy.WithStartWithin]. [Queue.Retry] removes the limit. Defaults to the zero time: none.
	ExpireAt time.Time
	// Metadata maps names to texts about the task, such as the trace in which it was enqueued, for handlers, middleware
	// and people: up to 10 KiB as JSON. Names that begin with "falldue." are reserved. A [Codec] does not encode it.
	// Defaults to nil: nothing is stored.
	Metadata map[string]string
	// Unique prevents the task from being stored while another task holds its unique key. Then the [Receipt] has the
	// holder's ID. Defaults to the zero value: any number of equal tasks are stored.
	Unique Unique
}

// EnqueueParams is a task for [Queue.EnqueueMany], which stores tasks of several
// kinds, or with different options, in one call. [Kind.Params] makes it.
type EnqueueParams struct {
	kind *kind
	args any
	opts *EnqueueOptions // nil, or shared by the tasks of a call
	own  bool            // whether opts are of this task only
	key  string          // the task key; opts have it if they are own
	err  error
	// put stores the tasks of a schedule's tick, or of a flow, including this one. It is nil for other tasks.
	put   func(context.Context, []EnqueueParams) ([]Receipt, error)
	place int      // of a task of a flow, among its tasks
	marks []string // the same, see store.MemberMark
}

// Receipt is the result of an enqueue for one task.
type Receipt struct {
	// ID is the ID of the task, or of the task that holds its unique key ([Unique]). With [Unique].For, the holder may
	// have been deleted since.
	ID int64
	// Existed reports whether another task held the unique key, so that no task was stored.
	Existed bool
}

func newParams(k *kind, args any, opts []EnqueueOptions) EnqueueParams {
	if k == nil {
		return EnqueueParams{}
	}
	p := EnqueueParams{kind: k, args: args, err: k.err}
	switch len(opts) {
	case 0:
	case 1:
		p.opts, p.key = &opts[0], opts[0].Key
	default:
		_, p.err = oneOf(opts)
	}
	if k.keyOf != nil && p.key == "" {
		p.key = k.keyOf(args)
	}
	return p
}

// options returns the options of the task, which must not be changed. Their key is [EnqueueParams.taskKey].
func (p *EnqueueParams) options() *EnqueueOptions {
	if p.opts == nil {
		return &noOptions
	}
	return p.opts
}

var noOptions EnqueueOptions

func (p *EnqueueParams) taskKey() string {
	if p.own {
		return p.opts.Key
	}
	return p.key
}

// oneOf returns the options that were passed to a call, which takes one at most.
func oneOf[O any](list []O) (O, error) {
	o, err := options.One(list)
	if err != nil {
		err = invalid("%w", err)
	}
	return o, err
}

// Kind returns the name of the task's kind.
func (p *EnqueueParams) Kind() string {
	if p.kind == nil {
		return ""
	}
	return p.kind.name
}

// Args returns the arguments of the task, of the type of its kind.
func (p *EnqueueParams) Args() any { return p.args }

// Options returns the options of the task. Middleware may set their fields, but must not change the value to which a
// field points, since other tasks can share it. To add metadata, use AddMetadata.
func (p *EnqueueParams) Options() *EnqueueOptions {
	if !p.own {
		o := *p.options()
		o.Key = p.key
		p.opts, p.own = &o, true
	}
	return p.opts
}

// AddMetadata adds a text to the metadata of the task, or replaces the text with that name.
func (p *EnqueueParams) AddMetadata(name, text string) {
	o := p.Options()
	metadata := make(map[string]string, len(o.Metadata)+1)
	maps.Copy(metadata, o.Metadata)
	metadata[name] = text
	o.Metadata = metadata
}

// maxMetadata is the greatest size of a task's metadata as JSON, in bytes. It has room for the trace
// context and the baggage of W3C, which are 512 and 8,192 bytes at most.
const maxMetadata = 10 << 10

// storedMetadata returns the JSON to store for a task's metadata, falldue's own marks and the task's times. It returns
// NULL if there are none.
func storedMetadata(o *EnqueueOptions, marks []string) (stored sql.Null[string], err error) {
	for name := range o.Metadata {
		if prefix, reserved := store.ReservedMetadata(name); reserved {
			return stored, invalid("metadata %.100q: the name must not begin with %q", name, prefix)
		}
	}
	metadata := store.Marked(o.Metadata, marks, o.Timeout, o.ExpireAt)
	if len(metadata) == 0 {
		return stored, nil
	}
	text, err := storable.JSON(metadata)
	if err == nil && len(text) > maxMetadata {
		err = fmt.Errorf("%d bytes as JSON: must be at most %d", len(text), maxMetadata)
	}
	if err != nil {
		return stored, invalid("metadata: %w", err)
	}
	return store.NotNull(string(text)), nil
}
