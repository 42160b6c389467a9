// Package othersql is an engine for tests that no code knows by its name. Its
// server is PostgreSQL's, which pretends to lack one thing after the other, so
// that whatever asks for the name of an engine instead of its abilities fails.
package othersql

import (
	"context"
	"fmt"

	"github.com/falldue/falldue/dialect"
)

// Name is the name of the engine.
const Name dialect.Name = "othersql"

// renamed is the dialect of PostgreSQL under another name.
type renamed struct{ dialect.Dialect }

func (renamed) Name() dialect.Name { return Name }

// lacks takes abilities away. The key says which.
var lacks = map[string]func(*dialect.Caps){
	"nothing":          func(*dialect.Caps) {},
	"lateral":          func(c *dialect.Caps) { c.Lateral = false },
	"writable CTE":     func(c *dialect.Caps) { c.WritableCTE = false },
	"update returning": func(c *dialect.Caps) { c.UpdateReturning, c.WritableCTE = false, false },
	"skip locked":      func(c *dialect.Caps) { c.SkipLocked = false },
	"row locks":        func(c *dialect.Caps) { c.LockRows, c.SkipLocked = false, false },
	"row address":      func(c *dialect.Caps) { c.RowAddress = "" },
	"lane expression":  func(c *dialect.Caps) { c.LaneExpression = false },
	"advisory locks":   func(c *dialect.Caps) { c.Locks = dialect.NoLocks },
	"copy and notify":  func(c *dialect.Caps) { c.Copy, c.Notify = false, false },
	"row locks, update returning": func(c *dialect.Caps) {
		c.LockRows, c.SkipLocked, c.UpdateReturning, c.WritableCTE = false, false, false, false
	},
	"everything": func(c *dialect.Caps) {
		c.LockRows, c.SkipLocked, c.UpdateReturning, c.WritableCTE, c.Lateral, c.LaneExpression = false, false, false, false, false, false
		c.Copy, c.Notify, c.RowAddress, c.ValueStatistics, c.Schemas, c.ReservedPrefix = false, false, "", false, false, ""
		c.CancelledCommitSucceeds, c.Locks = false, dialect.NoLocks
	},
}

// Lacks lists what a server may lack. Servers that lack much of it are slower.
func Lacks() (names []string) {
	for name := range lacks {
		names = append(names, name)
	}
	return names
}

// Probe returns the server behind db, which must be PostgreSQL, as one of this
// engine that lacks something of [Lacks].
func Probe(ctx context.Context, db dialect.Queryer, lack string) (dialect.Server, error) {
	s, err := dialect.Probe(ctx, db)
	if err != nil {
		return s, err
	}
	take, ok := lacks[lack]
	if !ok {
		return s, fmt.Errorf("othersql: no server lacks %q", lack)
	}
	s.Dialect = renamed{s.Dialect}
	take(&s.Caps)
	return s, s.Caps.Validate()
}
