package main

import (
	"context"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jmoiron/sqlx"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/pgxdb"
	"github.com/falldue/falldue/pgxqueue"
)

// openPgx opens falldue on pools of pgx, by the call that programs make. So its workers
// listen and its enqueues notify in all measures.
func openPgx(ctx context.Context, db database, s settings) (subject, error) {
	f := newFalldue(pgxName, db.server.engine)
	f.limit(s)
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
	f.pgxPools, f.pools = append(f.pgxPools, pool), append(f.pools, sqlx.NewDb(pgxdb.Open(pool), "pgx"))
	*q, err = pgxqueue.New(pool, configOf(s))
	return err
}
