package migrations

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

var errMemory = errors.New("each connection of the pool opens a separate, empty SQLite database in memory; " +
	"open a file, share one database with file:NAME?mode=memory&cache=shared, or call SetMaxOpenConns(1)")

// checkMemory refuses a database in memory that the connections of the pool do not share: only one of them would have
// the tables.
func (m *Migrator) checkMemory(ctx context.Context) error {
	if m.versions.d.Caps.Migrations != "sqlite" || m.db.Stats().MaxOpenConnections == 1 {
		return nil
	}
	one, err := m.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = one.Close() }()
	var file string
	if err := one.QueryRowContext(ctx, "select coalesce(file, '') from pragma_database_list where name = 'main'").Scan(&file); err != nil || file != "" {
		return err
	}
	other, err := m.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = other.Close() }()
	before, err := userVersion(ctx, one)
	if err != nil {
		return err
	}
	defer func() {
		_, _ = one.ExecContext(context.WithoutCancel(ctx), fmt.Sprint("pragma user_version = ", before))
	}()
	if _, err := one.ExecContext(ctx, fmt.Sprint("pragma user_version = ", before^1)); err != nil {
		return err
	}
	if seen, err := userVersion(ctx, other); err != nil || seen != before^1 {
		return errors.Join(errMemory, err)
	}
	return nil
}

// userVersion returns the number that a SQLite database has for its user. All connections to a database see the same.
func userVersion(ctx context.Context, conn *sql.Conn) (version int32, err error) {
	err = conn.QueryRowContext(ctx, "pragma user_version").Scan(&version)
	return version, err
}
