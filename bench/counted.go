package main

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"sync/atomic"

	sqlitedriver "modernc.org/sqlite"
)

// SQLite has no server that counts statements, so a driver does. Its pools are of
// countedDriver in measures that count, and it adds to countedStatements what a server
// would count: statements, and begins and ends of transactions.
const countedDriver = "sqlite-counted"

var countedStatements atomic.Int64

func init() { sql.Register(countedDriver, counted{&sqlitedriver.Driver{}}) }

type counted struct{ driver.Driver }

// sqliteConn is what database/sql uses of a connection of the driver.
type sqliteConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
	driver.Pinger
	driver.SessionResetter
	driver.Validator
}

// sqliteStmt is what database/sql uses of a prepared statement of the driver.
type sqliteStmt interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

func (d counted) Open(dsn string) (driver.Conn, error) {
	conn, err := d.Driver.Open(dsn)
	if err != nil {
		return nil, err
	}
	c, ok := conn.(sqliteConn)
	if !ok {
		return nil, fmt.Errorf("the connection %T of SQLite's driver cannot be counted", conn)
	}
	return countedConn{c}, nil
}

type countedConn struct{ sqliteConn }

func (c countedConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	countedStatements.Add(1)
	return c.sqliteConn.ExecContext(ctx, query, args)
}

func (c countedConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	countedStatements.Add(1)
	return c.sqliteConn.QueryContext(ctx, query, args)
}

func (c countedConn) BeginTx(ctx context.Context, options driver.TxOptions) (driver.Tx, error) {
	countedStatements.Add(1)
	tx, err := c.sqliteConn.BeginTx(ctx, options)
	if err != nil {
		return nil, err
	}
	return countedTx{tx}, nil
}

func (c countedConn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	stmt, err := c.sqliteConn.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	s, ok := stmt.(sqliteStmt)
	if !ok {
		return nil, fmt.Errorf("the statement %T of SQLite's driver cannot be counted", stmt)
	}
	return countedStmt{s}, nil
}

type countedTx struct{ driver.Tx }

func (t countedTx) Commit() error {
	countedStatements.Add(1)
	return t.Tx.Commit()
}

func (t countedTx) Rollback() error {
	countedStatements.Add(1)
	return t.Tx.Rollback()
}

type countedStmt struct{ sqliteStmt }

func (s countedStmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	countedStatements.Add(1)
	return s.sqliteStmt.ExecContext(ctx, args)
}

func (s countedStmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	countedStatements.Add(1)
	return s.sqliteStmt.QueryContext(ctx, args)
}
