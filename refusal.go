package falldue

import (
	"time"

	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/internal/store"
)

// portion is how many tasks one statement takes. A statement that fails is tried with
// fewer tasks, until the one that the database refuses is alone. Each success doubles
// the portion.
type portion struct {
	size     int // tasks of the next statement
	failures int // statements that failed in a row
}

func newPortion() portion { return portion{size: store.MaxBatch} }

// accepted records that a statement succeeded.
func (p *portion) accepted() { *p = portion{size: min(2*p.size, store.MaxBatch)} }

// failed records that a statement for n tasks failed, and returns how long to wait
// before the next one.
func (p *portion) failed(n int, t trouble) time.Duration {
	p.failures++
	p.size = (n + 1) / 2
	switch t {
	case refusal:
		return 0
	case outage:
		return errorPause(p.failures - 1)
	case timeout:
		p.size = (n + 7) / 8 // halves would take too long
	}
	if p.failures <= hastyFailures {
		return 0
	}
	return errorPause(p.failures - hastyFailures)
}

// hastyFailures is how often in a row a statement may fail without a pause, unless the
// database is away: enough to find one task among MaxBatch.
const hastyFailures = 12

// trouble is what an error of a statement may mean.
type trouble int

const (
	refusal trouble = iota // the database refuses the statement, because of one of its tasks
	unclear                // the same, or the database refuses everybody's statements for now
	timeout                // the statement took too long
	outage                 // the database is away, or a task makes it close the connection
)

// troubleOf returns what an error of a statement may mean; late reports whether the
// statement timed out.
func troubleOf(class dialect.Class, late bool) trouble {
	switch {
	case late:
		return timeout
	case class == dialect.Disconnected:
		return outage
	case class == dialect.Other, class == dialect.UniqueViolation:
		return refusal
	}
	return unclear
}
