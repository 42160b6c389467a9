package store

import (
	"context"

	"github.com/falldue/falldue/internal/statements"
)

// Profiled is how many tasks have a policy's delay and an anchor in a minute in common.
type Profiled = statements.Profiled

// Profile counts the tasks that wait or run, by all that their due times depend on. Rows
// that hold no numbers where those should be are left out.
func (s *Store) Profile(ctx context.Context) (list []Profiled, err error) {
	err = s.seldom(ctx, s.fixed("profile", statements.Profile), nil, nil, func(r row) error {
		var p Profiled
		if statements.ProfileColumns.Scan(r, &p) == nil {
			list = append(list, p)
		}
		return nil
	})
	return list, s.explain(err)
}
