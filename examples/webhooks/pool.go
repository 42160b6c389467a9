package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	_ "github.com/go-sql-driver/mysql" // driver mysql
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/jmoiron/sqlx"
	_ "modernc.org/sqlite" // driver sqlite

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/pgxqueue"
)

// pool has the connections of a process. Only this file depends on the database.
type pool struct {
	*sqlx.DB
	pgx *pgxpool.Pool // of the same connections, on PostgreSQL
}

// openPool returns a pool for a database: pgx's for PostgreSQL, and one of database/sql otherwise.
func openPool(ctx context.Context, dsn string) (*pool, error) {
	if dsn == "" {
		return nil, errors.New("WEBHOOKS_DSN is empty: set it to postgres://…, user:password@tcp(host)/database or file:…")
	}
	if strings.HasPrefix(dsn, "postgres://") {
		connections, err := pgxpool.New(ctx, dsn)
		if err != nil {
			return nil, fmt.Errorf("WEBHOOKS_DSN: %w", err)
		}
		return &pool{sqlx.NewDb(stdlib.OpenDBFromPool(connections), "pgx"), connections}, nil
	}
	driver := "mysql"
	if strings.HasPrefix(dsn, "file:") {
		driver = "sqlite"
	}
	db, err := sqlx.Open(driver, dsn)
	if err != nil {
		return nil, fmt.Errorf("WEBHOOKS_DSN: %w", err)
	}
	db.SetMaxOpenConns(20)
	db.SetMaxIdleConns(20)
	return &pool{db, nil}, nil
}

// newQueue returns a queue on the pool.
func (p *pool) newQueue(cfg falldue.Config) (*falldue.Queue, error) {
	if p.pgx != nil {
		return pgxqueue.New(p.pgx, cfg)
	}
	return falldue.New(p.DB, cfg)
}

func (p *pool) close() {
	_ = p.Close()
	if p.pgx != nil {
		p.pgx.Close()
	}
}
