package store

import (
	"context"
	"time"

	"github.com/falldue/falldue/internal/statements"
)

type (
	// Fact names a fact that the server's catalog has.
	Fact = statements.Fact
	// FactRow is the value of a fact.
	FactRow = statements.FactRow
)

// Fact asks the server's catalog for a fact. It reports whether the catalog has it and the
// server knows it.
func (s *Store) Fact(ctx context.Context, fact Fact) (f FactRow, known bool, err error) {
	stmt, ok := statements.Facts(s.server)[fact]
	if !ok {
		return f, false, nil
	}
	err = s.seldom(ctx, stmt, statements.Values{"table": statements.TableParam(s.server, s.tables)}, nil, func(r row) error {
		known = true
		return statements.FactColumns.Scan(r, &f)
	})
	return f, known, s.explain(err)
}

// BinaryLogs returns the number and the total size of the server's binary logs, and reports
// whether the server has any. It fails if the user lacks the permission to see them.
func (s *Store) BinaryLogs(ctx context.Context) (files, bytes int64, known bool, err error) {
	stmt, ok := statements.BinaryLogs(s.server)
	if !ok {
		return 0, 0, false, nil
	}
	err = s.seldom(ctx, stmt, nil, nil, func(r row) error {
		size, err := r.int(1)
		files, bytes = files+1, bytes+size
		return err
	})
	return files, bytes, err == nil && files > 0, s.explain(err)
}

// Now returns the time of the database's clock.
func (s *Store) Now(ctx context.Context) (now time.Time, err error) {
	err = s.seldom(ctx, statements.Now(s.server), nil, nil, func(r row) error {
		micros, err := r.int(0)
		now = Time(micros)
		return err
	})
	return now, err
}

// AllPolicies calls f for each policy that is stored, in the order of their keys.
func (s *Store) AllPolicies(ctx context.Context, f func(key, text string) error) error {
	stmt := statements.AllPolicies(s.server, s.tables)
	for after := ""; ; {
		n := 0
		err := s.seldom(ctx, stmt, statements.Values{"after": after, "limit": MaxBatch}, nil, func(r row) error {
			n++
			after = r.text(0)
			return f(after, r.text(1))
		})
		if err != nil || n < MaxBatch {
			return s.explain(err)
		}
	}
}

// Abandoned counts tasks whose leases expired at least age ago and that no worker has claimed
// since. It counts up to most tasks, and may read the whole table.
func (s *Store) Abandoned(ctx context.Context, age time.Duration, most int) (n int64, err error) {
	values := statements.Values{"age": age.Microseconds(), "limit": most}
	err = s.seldom(ctx, statements.Abandoned(s.server, s.tables), values, nil, func(r row) (err error) {
		n, err = r.int(0)
		return err
	})
	return n, s.explain(err)
}

// EndlessRun is a run that has lasted for very long.
type EndlessRun = statements.EndlessRun

// EndlessRuns returns up to most tasks that a worker has run for age, or whose leases last for
// as long. It may read the whole table.
func (s *Store) EndlessRuns(ctx context.Context, age time.Duration, most int) (list []EndlessRun, err error) {
	values := statements.Values{"age": age.Microseconds(), "limit": most}
	err = s.seldom(ctx, statements.EndlessRuns(s.server, s.tables), values, nil, func(r row) error {
		var e EndlessRun
		err := statements.EndlessRunColumns.Scan(r, &e)
		list = append(list, e)
		return err
	})
	return list, s.explain(err)
}
