package store

import (
	"context"

	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/internal/storable"
)

// Profiled is how many tasks have a policy's delay and an anchor in a minute in common.
type Profiled = statements.Profiled

// Profile counts the tasks that wait or run, by all that their due times depend on: those
// with a key, or that have its parts, or all if it is "". Rows that hold no numbers where those should be are left
// out.
func (s *Store) Profile(ctx context.Context, key string) (list []Profiled, err error) {
	stmt, values := s.fixed("profile", statements.Profile), statements.Values(nil)
	if key != "" {
		values = keyValues(key)
		if stmt = s.fixed("profile key", statements.ProfileKey); storable.HasParts(key) {
			stmt = s.fixed("profile part", statements.ProfilePart)
		}
	}
	err = s.seldom(ctx, stmt, values, nil, func(r row) error {
		p := Profiled{Lane: Lane{Key: key}}
		if statements.ProfileColumns.Scan(r, &p) == nil {
			list = append(list, p)
		}
		return nil
	})
	return list, s.explain(err)
}
