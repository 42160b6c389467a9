package upkeep

import (
	"context"
	"time"

	"github.com/falldue/falldue/internal/control"
	"github.com/falldue/falldue/internal/retry"
)

// A chore deletes old rows of a table other than the table of tasks.
type chore struct {
	every  time.Duration
	keep   time.Duration // how long rows are kept
	drop   func(ctx context.Context, keep time.Duration) error
	failed func(error) // logs why drop failed
	done   time.Time
}

// choreTables are the tables from which the chores delete old rows.
type choreTables interface {
	DropOrphanedProgress(ctx context.Context) error
	DropOldMinutes(ctx context.Context) error
	DropCancels(ctx context.Context, age time.Duration) error
	DropOldChanges(ctx context.Context, age time.Duration) error
	DropLostWorkers(ctx context.Context, age time.Duration) error
	DropAudit(ctx context.Context, age time.Duration) error
}

// choresOf lists the chores of a cleaner.
func choresOf(tables choreTables, log events) []*chore {
	// A failure to delete lost workers also makes announcements fail, which the announcer logs.
	unlogged := func(error) {}
	return []*chore{
		{every: CleanEvery, drop: func(ctx context.Context, _ time.Duration) error { return tables.DropOrphanedProgress(ctx) }, failed: log.progressFailed},
		{every: CleanEvery, keep: control.KeepCancels, drop: tables.DropCancels, failed: log.changesFailed},
		{every: time.Hour, keep: control.KeepChanges, drop: tables.DropOldChanges, failed: log.changesFailed},
		{every: CleanEvery, keep: keepWorkers, drop: tables.DropLostWorkers, failed: unlogged},
		{every: time.Hour, drop: func(ctx context.Context, _ time.Duration) error { return tables.DropOldMinutes(ctx) }, failed: log.historyNotCleaned},
		{every: time.Hour, keep: keepAudit, drop: tables.DropAudit, failed: log.historyNotCleaned},
	}
}

// doIfDue does the chore if it was last done long enough ago.
func (c *chore) doIfDue(ctx context.Context) {
	if time.Since(c.done) < c.every {
		return
	}
	c.done = time.Now()
	limited, cancel := retry.StatementContext(ctx, retry.StatementTimeout)
	defer cancel()
	if err := c.drop(limited, c.keep); err != nil && ctx.Err() == nil {
		c.failed(err)
	}
}
