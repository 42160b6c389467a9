package migrations

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/pressly/goose/v3/database"

	"github.com/falldue/falldue/dialect"
)

// versions implements goose's [database.Store], the table of applied migrations.
// Goose's own stores do not quote names.
type versions struct {
	d     dialect.Server
	table string
}

var _ database.Store = versions{}

func (v versions) Tablename() string { return v.table }

func (v versions) CreateVersionTable(ctx context.Context, db database.DBTxConn) error {
	_, err := db.ExecContext(ctx, "create table if not exists "+v.table+" (version bigint not null primary key, applied_at timestamp not null default current_timestamp)")
	return err
}

func (v versions) TableExists(ctx context.Context, db database.DBTxConn) (bool, error) {
	_, err := v.GetLatestVersion(ctx, db)
	if errors.Is(err, database.ErrVersionNotFound) {
		return false, nil
	}
	return err == nil, nil //nolint:nilerr // any other error occurs again when the table is created
}

// missing reports whether err means that the version table does not exist.
func (v versions) missing(err error) bool {
	class := v.d.Classify(err)
	return class == dialect.UndefinedTable || class == dialect.Other && v.d.Caps.AmbiguousMissingTable
}

func (v versions) Insert(ctx context.Context, db database.DBTxConn, req database.InsertRequest) error {
	_, err := db.ExecContext(ctx, "insert into "+v.table+" (version) values ("+v.d.Placeholder(1)+")", req.Version)
	return err
}

func (v versions) Delete(ctx context.Context, db database.DBTxConn, version int64) error {
	_, err := db.ExecContext(ctx, "delete from "+v.table+" where version = "+v.d.Placeholder(1), version)
	return err
}

func (v versions) GetMigration(ctx context.Context, db database.DBTxConn, version int64) (*database.GetMigrationResult, error) {
	var n int
	err := db.QueryRowContext(ctx, "select count(*) from "+v.table+" where version = "+v.d.Placeholder(1), version).Scan(&n)
	if err != nil {
		return nil, err
	}
	if n == 0 {
		return nil, database.ErrVersionNotFound
	}
	return &database.GetMigrationResult{Timestamp: time.Time{}, IsApplied: true}, nil
}

func (v versions) GetLatestVersion(ctx context.Context, db database.DBTxConn) (int64, error) {
	var latest sql.NullInt64
	if err := db.QueryRowContext(ctx, "select max(version) from "+v.table).Scan(&latest); err != nil {
		return 0, err
	}
	if !latest.Valid {
		return 0, database.ErrVersionNotFound
	}
	return latest.Int64, nil
}

func (v versions) ListMigrations(ctx context.Context, db database.DBTxConn) ([]*database.ListMigrationsResult, error) {
	rows, err := db.QueryContext(ctx, "select version from "+v.table+" order by version desc")
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	var list []*database.ListMigrationsResult
	for rows.Next() {
		r := &database.ListMigrationsResult{IsApplied: true}
		if err := rows.Scan(&r.Version); err != nil {
			return nil, err
		}
		list = append(list, r)
	}
	return list, rows.Err()
}
