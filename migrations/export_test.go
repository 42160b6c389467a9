package migrations

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"time"
)

// AdvisoryHolder selects who holds an advisory lock.
const AdvisoryHolder = advisoryHolder

// SetLockTimeout sets how long a migrator waits for others.
func (m *Migrator) SetLockTimeout(d time.Duration) { m.lockTimeout = d }

// Lock takes the lock of a migrator, on engines that have one.
func (m *Migrator) Lock(ctx context.Context, conn *sql.Conn) error {
	locker, err := lockerOf(m.versions.d, m.tables, time.Minute)
	if err != nil || locker == nil {
		return err
	}
	return locker.SessionLock(ctx, conn)
}

// Add adds a migration to a migrator, as a later release may have it.
func (m *Migrator) Add(name, text string) error {
	files, ok := m.files.(textFS)
	if !ok {
		return fmt.Errorf("the files are a %T", m.files)
	}
	more := maps.Clone(files)
	more[name] = text
	m.files = more
	return nil
}
