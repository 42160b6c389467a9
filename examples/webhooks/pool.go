package webhooks

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

// Pool has the connections of a process. Only this file depends on the database.
type Pool struct {
	*sqlx.DB
	pgx *pgxpool.Pool // of the same connections, on PostgreSQL
}

// conns is how many connections a pool has.
const conns = 20

// OpenPool returns a pool for a database: pgx's for PostgreSQL, and one of database/sql otherwise.
func OpenPool(ctx context.Context, dsn string) (*Pool, error) {
	driver := "mysql"
	switch {
	case dsn == "":
		return nil, errors.New("WEBHOOKS_DSN is empty: set it to postgres://…, user:password@tcp(host)/database or file:…")
	case strings.HasPrefix(dsn, "postgres://"):
		cfg, err := pgxpool.ParseConfig(dsn)
		if err != nil {
			return nil, fmt.Errorf("WEBHOOKS_DSN: %w", err)
		}
		cfg.MaxConns = conns
		pool, err := pgxpool.NewWithConfig(ctx, cfg)
		if err != nil {
			return nil, err
		}
		return &Pool{sqlx.NewDb(stdlib.OpenDBFromPool(pool), "pgx"), pool}, nil
	case strings.HasPrefix(dsn, "file:"):
		driver = "sqlite"
	}
	db, err := sqlx.Open(driver, dsn)
	if err != nil {
		return nil, fmt.Errorf("WEBHOOKS_DSN: %w", err)
	}
	db.SetMaxOpenConns(conns)
	db.SetMaxIdleConns(conns)
	return &Pool{db, nil}, nil
}

// newQueue returns a queue on the pool.
func (p *Pool) newQueue(cfg falldue.Config) (*falldue.Queue, error) {
	if p.pgx != nil {
		return pgxqueue.New(p.pgx, cfg)
	}
	return falldue.New(p.DB, cfg)
}

// Close closes the pool.
func (p *Pool) Close() error {
	err := p.DB.Close()
	if p.pgx != nil {
		p.pgx.Close()
	}
	return err
}
