// Package controltest has a table of changes in memory, and effects of changes, for tests of
// packages that read what people ask of all workers.
package controltest

import (
	"context"
	"sync"
	"time"

	"github.com/falldue/falldue/internal/store"
)

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

// Read returns the changes of a time back from now.
func (c *Table) Read(_ context.Context, back time.Duration) (list []store.StoredChange, err error) {
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
