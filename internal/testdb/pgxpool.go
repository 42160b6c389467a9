package testdb

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jmoiron/sqlx"

	"github.com/falldue/falldue/internal/pgxdb"
)

// PgxPool is the name of a driver that takes the connections of each database from a
// pgxpool.Pool of its own, as package pgxqueue does.
const PgxPool = "pgxpool"

// poolSize is how many connections such a pool may have, unless the DSN says it.
const poolSize = 20

func init() {
	sql.Register(PgxPool, poolDriver{})
	sqlx.BindDriver(PgxPool, sqlx.DOLLAR)
}

type poolDriver struct{}

// Open implements [driver.Driver].
func (poolDriver) Open(string) (driver.Conn, error) {
	return nil, errors.New("testdb: a pool has a connector")
}

// OpenConnector makes a pool.
func (poolDriver) OpenConnector(dsn string) (driver.Connector, error) {
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, err
	}
	if !strings.Contains(dsn, "pool_max_conns") {
		config.MaxConns = poolSize
	}
	pool, err := pgxpool.NewWithConfig(context.Background(), config)
	if err != nil {
		return nil, err
	}
	return ownPool{pgxdb.NewConnector(pool), pool}, nil
}

// ownPool is a connector that closes its pool.
type ownPool struct {
	*pgxdb.Connector
	pool *pgxpool.Pool
}

// Close is called by the Close of the database. It does not wait for connections that
// are in use.
func (p ownPool) Close() error {
	go p.pool.Close()
	return nil
}

// OpenDSN opens a database by one of [Drivers]. Unlike sqlx.Open it leaves idle
// connections to the driver's own pool, if it has one.
func OpenDSN(driver, dsn string) (*sqlx.DB, error) {
	db, err := sqlx.Open(driver, dsn)
	if err == nil {
		KeepIdle(db, 2) // the default
	}
	return db, err
}

// OpenFew is [OpenDSN] with at most four connections, which stay open: a server may take
// longer for a session than for all that a short test asks of it.
func OpenFew(driver, dsn string) (*sqlx.DB, error) {
	db, err := OpenDSN(driver, dsn)
	if err == nil {
		const conns = 4
		db.SetMaxOpenConns(conns)
		KeepIdle(db, conns)
	}
	return db, err
}

// KeepIdle sets how many idle connections database/sql keeps, unless a pool below does.
func KeepIdle(db *sqlx.DB, n int) {
	if db.DriverName() == PgxPool {
		n = 0
	}
	db.SetMaxIdleConns(n)
}
