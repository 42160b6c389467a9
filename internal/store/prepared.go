package store

import (
	"database/sql/driver"
	"time"
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
	at   time.Time // when it was prepared
	slow bool      // its last run took longer than slowRun
}

const (
	// slowRun is how long a run takes after which the plan may be to blame. A plan
	// that reads a whole table of 50,000 tasks takes longer.
	slowRun = 5 * time.Millisecond
	// planFor is how long a statement stays prepared even if its runs are slow. To
	// prepare it anew costs two round trips.
	planFor = 2 * time.Second
)

// outdated reports whether the statement should be prepared anew.
func (p *prepared) outdated() bool { return p.slow && time.Since(p.at) > planFor }

// ran records how long a run of a statement took, which was sent at a time.
func (c *conn) ran(stmt *prepared, sent time.Time, err error) {
	now := time.Now()
	if err == nil {
		c.lastAnswer = now
	}
	stmt.slow = now.Sub(sent) > slowRun // with an error too, such as that of a time limit
}
