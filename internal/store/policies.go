package store

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/sqlgen"
)

// PutPolicy stores a policy's text under its key, unless it is stored already. It runs
// in tx, or if tx is nil by itself.
func (s *Store) PutPolicy(ctx context.Context, tx Tx, key, text string) error {
	put := func(x runner) (sql.Result, error) {
		return x.exec(ctx, s.fixed("put policy", statements.PutPolicy), statements.Values{"key": key, "policy": text}, nil)
	}
	if tx != nil {
		_, err := put(unprepared{tx})
		return s.explain(err)
	}
	_, err := once(ctx, s, put)
	return err
}

// Policy returns the text of a policy that is stored under a key, and false if there
// is none.
func (s *Store) Policy(ctx context.Context, key string) (text string, found bool, err error) {
	err = s.read(ctx, s.fixed("policy", statements.Policy), statements.Values{"key": key}, func() { found = false }, func(r row) error {
		text, found = r.text(0), true
		return nil
	})
	return text, found, err
}

// samplePoints are the numbers of attempts for which CheckDelays compares delays.
var samplePoints = []int64{0, 1, 2, 3, 5, 8, 13, 25, 40, 100, 1000, 1_000_000, 1<<31 - 1}

// CheckDelays compares the delays that the database computes for formulas with those
// that Go computes. It returns an error with both values if they differ, since tasks
// would then run at other times than their policies say.
func (s *Store) CheckDelays(ctx context.Context, formulas []sqlgen.Formula) error {
	points := make([]statements.Row, len(samplePoints))
	for i, n := range samplePoints {
		points[i] = statements.Row{n}
	}
	stmt := statements.Check(s.server, formulas, len(points))
	return s.Retry(ctx, func() error {
		return unprepared{s.db}.query(ctx, stmt, nil, points, func(r row) error {
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
	_, err := s.Sweep(ctx, noQueue)
	return err
}
