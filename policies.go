package falldue

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/sqlgen"
)

// policies knows the policies that tasks were enqueued with, by the key of
// their text. A text never changes under its key, so that what was read once
// holds.
type policies struct {
	store *store

	mu     sync.Mutex
	stored map[string]bool // known to be in the table
	loaded map[string]loadedPolicy
}

type loadedPolicy struct {
	rule  *rule
	err   error
	again time.Time // when to look again after an error
}

// rule is a policy, with what a poller asks of it at every claim.
type rule struct {
	policy backoff.Policy
	delay  sqlgen.Formula
	text   string // of the delay
}

func newRule(p backoff.Policy) *rule {
	return &rule{policy: p, delay: p.Delay(), text: p.Delay().String()}
}

// delayAfter is the delay after so many attempts.
func (r *rule) delayAfter(attempts int) time.Duration { return micros(r.delay.Micros(int64(attempts))) }

// delayIn is the delay of the tasks of a lane.
func (r *rule) delayIn(at lane) time.Duration {
	if at.state == statements.StateSnoozed {
		return 0
	}
	return r.delayAfter(at.attempts)
}

// retryBroken is how long a policy that could not be read is left alone.
const retryBroken = 10 * time.Second

// maxLoaded bounds the policies a process remembers.
const maxLoaded = 10_000

func newPolicies(s *store) *policies {
	return &policies{store: s, stored: map[string]bool{}, loaded: map[string]loadedPolicy{}}
}

// put stores p under its key: in the caller's transaction, or by itself where
// tx is nil.
func (p *policies) put(ctx context.Context, tx Tx, key string, policy backoff.Policy) error {
	p.mu.Lock()
	known := p.stored[key]
	p.mu.Unlock()
	if known {
		return nil
	}
	stmt := p.store.stmt("put policy", 0, func(int) statements.Stmt { return statements.PutPolicy(p.store.server, p.store.tables) })
	args := stmt.Bind(statements.Values{"key": key, "policy": policy.String()}, nil)
	if tx != nil {
		_, err := tx.ExecContext(ctx, stmt.SQL, args...)
		return p.store.explain(err)
	}
	err := p.store.write(ctx, func() error {
		_, err := pool{p.store}.exec(ctx, stmt.SQL, args)
		return err
	})
	if err == nil {
		p.mu.Lock()
		if len(p.stored) >= maxLoaded {
			clear(p.stored)
		}
		p.stored[key] = true
		p.mu.Unlock()
	}
	return err
}

// get returns the policy of a key. Its error says what is wrong with that
// policy alone, or with the database.
func (p *policies) get(ctx context.Context, key string) (*rule, error) {
	p.mu.Lock()
	l, ok := p.loaded[key]
	p.mu.Unlock()
	if ok && (l.err == nil || time.Now().Before(l.again)) {
		return l.rule, l.err
	}
	l.rule, l.err = p.load(ctx, key)
	l.again = time.Now().Add(retryBroken)
	p.mu.Lock()
	if len(p.loaded) >= maxLoaded {
		clear(p.loaded)
	}
	p.loaded[key] = l
	p.mu.Unlock()
	return l.rule, l.err
}

func (p *policies) load(ctx context.Context, key string) (*rule, error) {
	stmt := p.store.stmt("policy", 0, func(int) statements.Stmt { return statements.Policy(p.store.server, p.store.tables) })
	var text string
	err := p.store.retry(ctx, func() error {
		return p.store.db.QueryRowContext(ctx, stmt.SQL, stmt.Bind(statements.Values{"key": key}, nil)...).Scan(&text)
	})
	if errors.Is(err, sql.ErrNoRows) {
		return nil, fmt.Errorf("policy %s is not in the policies table", key)
	}
	if err != nil {
		return nil, fmt.Errorf("read policy %s: %w", key, err)
	}
	policy, err := backoff.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("policy %s: %w", key, err)
	}
	if err := p.store.check(ctx, []backoff.Policy{policy}); err != nil {
		return nil, err
	}
	return newRule(policy), nil
}

// samplePoints are the attempts at which a database is asked for the delays of
// a policy before a worker trusts it.
var samplePoints = []int64{0, 1, 2, 3, 5, 8, 13, 25, 40, 100, 1000, 1_000_000, 1<<31 - 1}

// check compares what the database computes with what Go does. A difference
// would mean that tasks run at other times than policies say, so that a worker
// rather does not start.
func (s *store) check(ctx context.Context, list []backoff.Policy) error {
	formulas := make([]sqlgen.Formula, len(list))
	for i, p := range list {
		formulas[i] = p.Delay()
	}
	points := make([]statements.Row, len(samplePoints))
	for i, n := range samplePoints {
		points[i] = statements.Row{n}
	}
	return s.retry(ctx, func() error {
		stmt := statements.Check(s.server, formulas, len(points))
		rows, err := s.db.QueryContext(ctx, stmt.SQL, stmt.Bind(nil, points)...)
		if err != nil {
			return err
		}
		defer func() { _ = rows.Close() }()
		values := make([]int64, len(formulas))
		var n int64
		into := []any{&n}
		for i := range values {
			into = append(into, &values[i])
		}
		for rows.Next() {
			if err := rows.Scan(into...); err != nil {
				return err
			}
			for i, f := range formulas {
				if want := f.Micros(n); !sqlgen.Agree(float64(want)/1e6, float64(values[i])/1e6) {
					return fmt.Errorf("falldue: the delay %s after %d attempts is %v in Go, but %v on %s %s", f, n, micros(want), micros(values[i]), s.server.Name(), s.server.Version)
				}
			}
		}
		return rows.Err()
	})
}
