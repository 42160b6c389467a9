package store

import (
	"context"

	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/internal/storable"
)

// Profiled is the number of tasks with the same delay and with anchors in the same minute.
type Profiled = statements.Profiled

// Profile counts waiting and running tasks by everything that their due times depend on. It counts tasks
// with a key, or with its parts, or all tasks if key is "". It leaves out rows with texts instead of numbers.
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
