// Package othersql is an engine for tests, whose name no code knows. Its server is
// PostgreSQL with some of its Caps taken away. Code that asks for the name of an
// engine instead of its Caps fails on it, and so does code that relies on an
// ability that it has not asked for.
package othersql

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/falldue/falldue/dialect"
)

// Name is the name of the engine.
const Name dialect.Name = "othersql"

// renamed is the dialect of PostgreSQL under another name.
type renamed struct{ dialect.Dialect }

func (renamed) Name() dialect.Name { return Name }

// lacks are functions that take abilities away, by what they take away.
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

// Lacks lists what a server may lack.
func Lacks() []string { return slices.Sorted(maps.Keys(lacks)) }

// Probe returns the server behind db, which must be PostgreSQL, as a server of
// this engine without one of [Lacks].
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
