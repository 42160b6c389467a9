package main

import (
	"context"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jmoiron/sqlx"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/pgxdb"
	"github.com/falldue/falldue/pgxqueue"
)

// openPgx opens falldue on pools of pgx. Where a measure wants no notifications, as of
// the other subjects, it has none.
func openPgx(ctx context.Context, db database, s settings) (subject, error) {
	f := newFalldue(pgxName, db.server.engine)
	for _, q := range []**falldue.Queue{&f.worker, &f.producer} {
		err := f.addPgx(ctx, db, s, q)
		if err != nil {
			f.close()
			return nil, err
		}
	}
	return f, f.worker.Migrate(ctx)
}

// addPgx makes a queue on a pool of its own.
func (f *falldueSubject) addPgx(ctx context.Context, db database, s settings, q **falldue.Queue) error {
	cfg, err := pgxpool.ParseConfig(db.dsn)
	if err != nil {
		return err
	}
	cfg.MaxConns = connections
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return err
	}
	silent := sqlx.NewDb(pgxdb.Open(pool), "pgx")
	f.pgxPools, f.pools = append(f.pgxPools, pool), append(f.pools, silent)
	if s.notify {
		*q, err = pgxqueue.New(pool, configOf(s))
	} else {
		*q, err = falldue.New(silent, configOf(s))
	}
	return err
}
