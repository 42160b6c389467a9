package store

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/internal/storable"
	"github.com/falldue/falldue/sqlgen"
)

// aloneFor is how long storing policies outside the caller's transaction may take. The
// caller's transaction may have the pool's only connection.
const aloneFor = time.Second

// PutPolicies stores the texts of policies under their keys, unless they are stored
// already. It reports whether they are certain to stay stored, whatever becomes of tx.
//
// A row that a transaction inserts is locked until the transaction ends, and so is a row that an
// INSERT finds there on MySQL and MariaDB. Transactions that enqueue tasks of one policy
// would wait for each other, and deadlock if they wait for other rows, too. So policies
// are stored on another connection, even if the caller has a transaction. They are
// stored in tx only if there is no other connection, or if the database has one writer
// at a time, which may be tx.
func (s *Store) PutPolicies(ctx context.Context, tx Tx, texts map[string]string) (stored bool, err error) {
	if tx == nil {
		err := s.putAlone(ctx, texts)
		return err == nil, err
	}
	if s.Busy() {
		if texts, err = s.missing(ctx, unprepared{tx}, texts); err != nil || len(texts) == 0 {
			return false, s.explain(err) // tx itself may have stored them
		}
	}
	if !s.server.Caps.SingleWriter {
		alone, cancel := context.WithTimeout(ctx, aloneFor)
		defer cancel()
		if err = s.putAlone(alone, texts); err == nil {
			return true, nil
		}
		if errors.Is(err, errForgedPolicy) {
			return false, err
		}
	}
	texts, err = s.missing(ctx, unprepared{tx}, texts)
	if err != nil || len(texts) == 0 {
		return false, s.explain(err)
	}
	return false, s.explain(s.put(ctx, unprepared{tx}, texts))
}

// putAlone stores the policies that are not stored on a connection of the pool.
func (s *Store) putAlone(ctx context.Context, texts map[string]string) error {
	texts, err := reading(ctx, s, func(x runner) (map[string]string, error) { return s.missing(ctx, x, texts) })
	if err != nil || len(texts) == 0 {
		return err
	}
	_, err = inTx(ctx, s, func(x runner) (struct{}, error) { return struct{}{}, s.put(ctx, x, texts) })
	return err
}

// PolicyOf returns the policy of a key, out of texts that [Store.Policies] has returned. The key is the
// hash of the text: an enqueuer cannot give another enqueuer's tasks a policy.
func PolicyOf(texts map[string]string, key string) (backoff.Policy, error) {
	text, ok := texts[key]
	if !ok {
		return backoff.Policy{}, fmt.Errorf("policy %s is not in the policies table", key)
	}
	policy, err := backoff.Parse(text)
	if err != nil {
		return policy, fmt.Errorf("policy %s: %w", key, err)
	}
	if hash := storable.PolicyKey(text); hash != key {
		return policy, fmt.Errorf("policy %s: the policies table has the text %q, whose key is %s; delete that row", key, text, hash)
	}
	return policy, nil
}

// put stores policies in the order of their keys, so that no two transactions wait for
// each other's rows.
func (s *Store) put(ctx context.Context, x runner, texts map[string]string) error {
	stmt := s.fixed("put policy", statements.PutPolicy)
	for _, key := range slices.Sorted(maps.Keys(texts)) {
		if _, err := x.exec(ctx, stmt, statements.Values{"key": key, "policy": texts[key]}, nil); err != nil {
			return err
		}
	}
	return nil
}

// MissingPolicies returns those policies that are not stored.
func (s *Store) MissingPolicies(ctx context.Context, texts map[string]string) (map[string]string, error) {
	stored, err := s.Policies(ctx, slices.Collect(maps.Keys(texts)))
	return without(texts, stored), err
}

// errForgedPolicy is the error of a policy whose key has another text in the table. Tasks with that
// policy would never run.
var errForgedPolicy = errors.New("the policies table has another text under a policy's key; delete that row")

// missing returns those policies that a transaction does not see in the table.
func (s *Store) missing(ctx context.Context, tx runner, texts map[string]string) (map[string]string, error) {
	seen, err := s.policies(ctx, tx, slices.Collect(maps.Keys(texts)))
	for key, text := range seen {
		if text != texts[key] {
			return nil, fmt.Errorf("%w: key %s, text %q, want %q", errForgedPolicy, key, text, texts[key])
		}
	}
	return without(texts, seen), err
}

// without returns the texts whose keys are not in stored.
func without(texts, stored map[string]string) map[string]string {
	rest := maps.Clone(texts)
	maps.DeleteFunc(rest, func(key, _ string) bool { _, ok := stored[key]; return ok })
	return rest
}

// Policies returns the texts of those policies that are stored, by their keys.
func (s *Store) Policies(ctx context.Context, keys []string) (map[string]string, error) {
	return reading(ctx, s, func(x runner) (map[string]string, error) { return s.policies(ctx, x, keys) })
}

func (s *Store) policies(ctx context.Context, x runner, keys []string) (map[string]string, error) {
	found := map[string]string{}
	err := inBatches(s, keys, func(batch []string) error {
		rows := statements.KeyColumns.Rows(len(batch), func(i int) *string { return &batch[i] })
		return x.query(ctx, s.batch("policies", len(batch), statements.Policies), nil, rows, func(r row) error {
			found[r.text(0)] = r.text(1)
			return nil
		})
	})
	return found, err
}

// samplePoints are the numbers of attempts for which CheckDelays compares delays.
var samplePoints = []int64{0, 1, 2, 3, 5, 8, 13, 25, 40, 100, 1000, 1_000_000, 1<<31 - 1}

// Limits of the formulas that one statement checks. Engines limit the columns of a result, such
// as PostgreSQL to 1,664, and the length of a statement, such as SQLite to 1,000,000 bytes.
const (
	maxFormulas    = 100
	maxFormulaText = 500_000
)

// CheckDelays compares the delays that the database computes for formulas with those
// that Go computes. It returns an error with both values if they differ, since tasks
// would then run at other times than their policies say.
func (s *Store) CheckDelays(ctx context.Context, formulas []sqlgen.Formula) error {
	var page []sqlgen.Formula
	length, seen := 0, map[string]bool{}
	for _, f := range formulas {
		text := f.String()
		if seen[text] {
			continue
		}
		seen[text] = true
		n := len(f.MicrosSQL(s.server, "s.n"))
		if len(page) == maxFormulas || len(page) > 0 && length+n > maxFormulaText {
			if err := s.checkPage(ctx, page); err != nil {
				return err
			}
			page, length = nil, 0
		}
		page, length = append(page, f), length+n
	}
	if len(page) == 0 {
		return nil
	}
	return s.checkPage(ctx, page)
}

func (s *Store) checkPage(ctx context.Context, formulas []sqlgen.Formula) error {
	points := make([]statements.Row, len(samplePoints))
	for i, n := range samplePoints {
		points[i] = statements.Row{n}
	}
	stmt := statements.Check(s.server, formulas, len(points))
	return s.Retry(ctx, func() error {
		return s.seldom(ctx, stmt, nil, points, func(r row) error {
			n, err := r.int(0)
			if err != nil {
				return err
			}
			for i, f := range formulas {
				got, err := r.int(i + 1)
				if err != nil {
					return err
				}
				if want := f.Micros(n); !sqlgen.Agree(float64(want)/1e6, float64(got)/1e6) {
					return fmt.Errorf("falldue: the delay %s after %d attempts is %v in Go, but %v on %s %s", f, n, Duration(want), Duration(got), s.server.Name(), s.server.Version)
				}
			}
			return nil
		})
	})
}

// CheckTables returns an error that wraps [ErrNotMigrated] if the tables are
// missing.
func (s *Store) CheckTables(ctx context.Context) error {
	const noQueue = ""
	_, _, err := s.Sweep(ctx, []Place{FirstPlace(noQueue)}, 1)
	return err
}
