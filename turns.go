package falldue

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/internal/statements"
)

// errNoTurn is returned by a claim that has to wait for its turn: see
// statements.Turn.
var errNoTurn = errors.New("other workers have the turns of the queue")

// errHasTurn is wrapped by the error of a transaction whose connection may still
// have a turn.
var errHasTurn = errors.New("in a turn")

const (
	// turnSize is how many tasks a claim must have found for the next ones to need
	// turns, of a worker that may have as many at once. The claims of smaller ones
	// are too short to stand in each other's way, and where a commit takes its time
	// they are worth having side by side.
	turnSize = maxBatch / 4
	// Between two tries of a claim that found no turn a poller waits for
	// minTurnWait, doubled with each up to maxTurnWait. Who waits for longer
	// disturbs less, and then claims several times in a row.
	minTurnWait = 4 * time.Millisecond
	maxTurnWait = 160 * time.Millisecond
	// turnPatience is how long a poller waits for a turn before it claims without
	// one: whoever has it may have vanished.
	turnPatience = time.Second
)

// turnOf names the turns of those who claim tasks of the same kinds from a queue.
// Others do not stand in their way, and need not wait for them.
func turnOf(cfg Config, queue string, handlers map[string]*handler) int64 {
	h := fnv.New64a()
	_, _ = fmt.Fprintf(h, "%q %q %q", cfg.Schema, cfg.Prefix, queue)
	for _, kind := range slices.Sorted(maps.Keys(handlers)) {
		if handlers[kind].kind.Queue == queue {
			_, _ = fmt.Fprintf(h, " %q", kind)
		}
	}
	return int64(h.Sum64()>>3)<<1 | 1<<61
}

// inTurn runs fn in a turn, on an engine where a connection takes it. The lock
// outlives a transaction, so the connection does not outlive an error. The turn
// ends before the commit, whose rows the next claim may find locked still.
func (s *store) inTurn(ctx context.Context, x execer, turn int64, fn func() error) error {
	take := s.stmt("turn", 0, func(int) statements.Stmt { return statements.TakeClaimSlot(s.server) })
	numbers, err := selectInt64s(ctx, x, take.SQL, take.Bind(statements.Values{"slot": turn}, nil))
	if err != nil && s.server.Classify(err) == dialect.Other && ctx.Err() == nil {
		s.noTurns.Store(true) // as on some clusters
		return fn()
	}
	if err != nil {
		return fmt.Errorf("%w: %w", errHasTurn, err)
	}
	if len(numbers) == 0 || numbers[0] == 0 {
		return errNoTurn
	}
	if err := fn(); err != nil {
		return fmt.Errorf("%w: %w", errHasTurn, err)
	}
	end := s.stmt("end turn", 0, func(int) statements.Stmt { return statements.ReleaseClaimSlot(s.server) })
	if _, err := x.exec(ctx, end.SQL, end.Bind(statements.Values{"slot": turn, "number": numbers[0]}, nil)); err != nil {
		return fmt.Errorf("%w: %w", errHasTurn, err)
	}
	return nil
}

// queueing is how a poller gets its turns. Its loop alone uses it.
type queueing struct {
	deep  bool      // a claim found many tasks, and none since found less than it asked for
	since time.Time // of the first try without a turn since the last claim
	wait  time.Duration
}

// needs tells whether a worker that may have up to limit tasks at once needs a
// turn for its next claim. A small claim that waits for it is a larger one when
// its turn comes: where workers stand in each other's way, it is the number of
// claims that costs.
func (q *queueing) needs(limit int) bool {
	return q.deep && limit >= turnSize && (q.since.IsZero() || time.Since(q.since) < turnPatience)
}

// again returns how long to wait after a try without a turn.
func (q *queueing) again() time.Duration {
	if q.since.IsZero() {
		q.since = time.Now()
	}
	q.wait = min(max(2*q.wait, minTurnWait), maxTurnWait)
	return q.wait/2 + rand.N(q.wait/2)
}

// claimed notes that a claim for up to limit tasks found n.
func (q *queueing) claimed(n, limit int) {
	q.deep = n >= turnSize || q.deep && n == limit
	q.since, q.wait = time.Time{}, q.wait/2
}
