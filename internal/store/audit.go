package store

import (
	"context"
	"time"

	"github.com/falldue/falldue/internal/statements"
)

type (
	// Deed is something that a person has done.
	Deed = statements.Deed
	// StoredDeed is a deed as it is stored.
	StoredDeed = statements.StoredDeed
)

// PutDeed stores a deed.
func (s *Store) PutDeed(ctx context.Context, d Deed) error {
	values := statements.Values{}
	statements.DeedColumns.Set(values, &d)
	_, err := s.affect(ctx, "put deed", statements.PutDeed, values)
	return err
}

// Audit returns the last deeds, newest first, up to limit.
func (s *Store) Audit(ctx context.Context, limit int) (list []StoredDeed, err error) {
	err = s.read(ctx, s.fixed("read audit", statements.ReadAudit), statements.Values{"limit": limit}, func() { list = nil }, func(r row) error {
		var d StoredDeed
		err := statements.StoredDeedColumns.Scan(r, &d)
		list = append(list, d)
		return err
	})
	return list, err
}

// DropAudit deletes the deeds that are older than age.
func (s *Store) DropAudit(ctx context.Context, age time.Duration) error {
	_, err := s.affect(ctx, "drop audit", statements.DropAudit, statements.Values{"age": age.Microseconds()})
	return err
}
