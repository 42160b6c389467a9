package store

import (
	"context"
	"database/sql/driver"
	"maps"
	"slices"
	"time"

	"github.com/falldue/falldue/dialect"
)

// prepared is a prepared statement of a connection.
//
// PostgreSQL plans a statement when it is first run, and keeps the plan until the
// statistics of the table change. A plan that was made for an empty table reads the
// whole table, which costs nothing. When many tasks are stored, it costs much, and
// it may be minutes until autovacuum counts them. No form of the statements prevents
// such a plan. So a statement that took long is prepared anew, and planned for the
// size that the table has now.
type prepared struct {
	driver.Stmt
	text string
	at   time.Time // when it was prepared
	ran  time.Time // when it last ran
	slow bool      // its last run took longer than slowRun
}

const (
	// maxPrepared is the greatest number of statements prepared on a connection. The
	// one that ran least recently makes room for a new one.
	maxPrepared = 40
	// slowRun is the time above which the plan of a run may be to blame. A plan that
	// reads a whole table of 50,000 tasks takes longer.
	slowRun = 5 * time.Millisecond
	// planFor is how long a statement stays prepared even if its runs are slow. To
	// prepare it anew costs two round trips.
	planFor = 2 * time.Second
)

// outdated reports whether the statement should be prepared anew.
func (p *prepared) outdated() bool { return p.slow && time.Since(p.at) > planFor }

// ran records how long a run of a statement has taken since it was sent. A statement
// that no longer fits the tables, or that the session has lost, is prepared anew by the
// next call.
func (c *conn) ran(stmt *prepared, sent time.Time, err error) {
	now := time.Now()
	stmt.slow = now.Sub(sent) > slowRun // even after an error, such as a timeout
	stmt.ran = now
	if err == nil {
		c.lastAnswer = now
		return
	}
	switch c.classify(err) {
	case dialect.StatementStale, dialect.PreparedStatementMissing, dialect.UndefinedTable:
		c.forget(stmt)
	}
}

// prepare returns the prepared statement of a text, which it prepares on the first
// call. Its error is driver.ErrBadConn if the connection is dead.
func (c *conn) prepare(ctx context.Context, text string) (*prepared, error) {
	if err := c.check(ctx); err != nil {
		return nil, err
	}
	stmt := c.prepared[text]
	if stmt != nil && c.keepsPlans && stmt.outdated() {
		c.forget(stmt)
		stmt = nil
	}
	if stmt != nil {
		return stmt, nil
	}
	if len(c.prepared) >= maxPrepared {
		c.forget(slices.MinFunc(slices.Collect(maps.Values(c.prepared)), func(a, b *prepared) int { return a.ran.Compare(b.ran) }))
	}
	anew, err := c.prepareAnew(ctx, text)
	if err != nil && len(c.prepared) > 0 && c.classify(err) == dialect.Unavailable {
		c.forgetAll() // the server may have as many prepared statements as it allows
		anew, err = c.prepareAnew(ctx, text)
	}
	if err != nil {
		return nil, err
	}
	now := time.Now()
	stmt = &prepared{Stmt: anew, text: text, at: now, ran: now}
	c.prepared[text] = stmt
	return stmt, c.checkTransaction(ctx)
}

// prepareAnew prepares a statement. The caller closes it.
func (c *conn) prepareAnew(ctx context.Context, text string) (driver.Stmt, error) {
	if c.pooled {
		return pooled{c.driver, text}, nil
	}
	return c.prepareByName(ctx, text)
}

// prepareByName prepares a statement of the session, or begins a COPY.
func (c *conn) prepareByName(ctx context.Context, text string) (driver.Stmt, error) {
	if p, ok := c.driver.(driver.ConnPrepareContext); ok {
		stmt, err := p.PrepareContext(ctx, text)
		return stmt, c.lost(err)
	}
	return c.driver.(driver.Conn).Prepare(text)
}

// forget closes a prepared statement.
func (c *conn) forget(stmt *prepared) {
	_ = stmt.Close() // a statement that is not closed ends with its connection
	delete(c.prepared, stmt.text)
}

// forgetAll closes all prepared statements.
func (c *conn) forgetAll() {
	for _, stmt := range c.prepared {
		c.forget(stmt)
	}
}
