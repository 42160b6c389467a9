// Package controltest has databases in memory, and effects of changes, for tests of packages that
// apply pauses, cancels and policies.
package controltest

import (
	"context"
	"sync"
	"time"

	"github.com/falldue/falldue/internal/store"
	"github.com/falldue/falldue/sqlgen"
)

// Database calls functions, unless those are nil.
type Database struct {
	OnChanges  func(ctx context.Context, back time.Duration) ([]store.StoredChange, error)
	OnPolicies func(ctx context.Context, keys []string) (texts map[string]string, err error)
	OnCheck    func(context.Context, []sqlgen.Formula) error
}

// Changes returns no changes without a function.
func (d Database) Changes(ctx context.Context, back time.Duration) ([]store.StoredChange, error) {
	if d.OnChanges == nil {
		return nil, nil
	}
	return d.OnChanges(ctx, back)
}

// Policies returns no policies without a function.
func (d Database) Policies(ctx context.Context, keys []string) (texts map[string]string, err error) {
	if d.OnPolicies == nil {
		return nil, nil
	}
	return d.OnPolicies(ctx, keys)
}

// CheckDelays agrees with Go without a function.
func (d Database) CheckDelays(ctx context.Context, list []sqlgen.Formula) error {
	if d.OnCheck == nil {
		return nil
	}
	return d.OnCheck(ctx, list)
}

// Stored does nothing.
func (Database) Stored(map[string]string) {}

// Table is a table of changes for tests with a clock of their own.
type Table struct {
	sync.Mutex
	List []store.StoredChange
	Err  error // of reads

	reads int
}

// Add adds a change that ends at a time, or never if that is zero.
func (c *Table) Add(subject, what, value string, created, ends time.Time) {
	c.Lock()
	defer c.Unlock()
	one := store.StoredChange{ID: int64(len(c.List) + 1), Created: created.UnixMicro()}
	one.Subject, one.What, one.Value = subject, what, value
	if !ends.IsZero() {
		one.Ends = ends.UnixMicro()
	}
	c.List = append(c.List, one)
}

// Changes returns the changes of a time back from now.
func (c *Table) Changes(_ context.Context, back time.Duration) (list []store.StoredChange, err error) {
	c.Lock()
	defer c.Unlock()
	c.reads++
	now := time.Now()
	for _, one := range c.List {
		if now.Sub(store.Time(one.Created)) < back {
			one.Now = now.UnixMicro()
			list = append(list, one)
		}
	}
	return list, c.Err
}

// Count returns how often the changes were read.
func (c *Table) Count() int {
	c.Lock()
	defer c.Unlock()
	return c.reads
}

// Effects are effects of changes that call functions, unless those are nil.
type Effects struct {
	OnCancelled           func(fences map[int64]int64)
	OnResumed, OnPolicies func()
}

// Cancelled calls the function, if there is one.
func (e Effects) Cancelled(fences map[int64]int64) {
	if e.OnCancelled != nil {
		e.OnCancelled(fences)
	}
}

// PausedMore does nothing.
func (e Effects) PausedMore() {}

// Resumed calls the function, if there is one.
func (e Effects) Resumed() {
	if e.OnResumed != nil {
		e.OnResumed()
	}
}

// PoliciesChanged calls the function, if there is one.
func (e Effects) PoliciesChanged() {
	if e.OnPolicies != nil {
		e.OnPolicies()
	}
}
