package ops

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/falldue/falldue"
)

// Level is the severity of a finding.
type Level int

// The levels.
const (
	// Fine: there is nothing to do.
	Fine Level = iota
	// Unchecked: the check could not run, because of a missing permission or the time limit, for example.
	Unchecked
	// Attention: a person should look at the finding.
	Attention
	// Broken: something does not work.
	Broken
)

func (l Level) String() string {
	switch l {
	case Fine:
		return "ok"
	case Unchecked:
		return "unchecked"
	case Attention:
		return "attention"
	case Broken:
		return "broken"
	}
	return fmt.Sprintf("Level(%d)", int(l))
}

// Finding is a result of a check.
type Finding struct {
	// Check is the name of the check, such as clock.
	Check string
	Level Level
	// Text describes the finding, and Advice suggests a fix. Advice is "" if there is nothing
	// to do.
	Text, Advice string
}

// check is one check of [Ops.Diagnose]. Its error means that the check could not be
// made.
type check struct {
	name string
	run  func(context.Context) ([]Finding, error)
}

// checkLimit is how long a check may take.
const checkLimit = 10 * time.Second

// Diagnose checks the server, the tables and the waiting tasks, as far as the server's catalog
// allows, and returns one finding or more for each check. A check that fails, or takes longer
// than 10 seconds, is a finding, too, and the other checks are still made. Diagnose changes
// nothing. It returns an error only if ctx has ended.
func (o *Ops) Diagnose(ctx context.Context) ([]Finding, error) {
	var findings []Finding
	for _, c := range []check{
		{"server", o.checkServer}, {"tables", o.checkTables}, {"clock", o.checkClock}, {"policies", o.checkPolicies}, {"overrides", o.checkOverrides},
		{"workers", o.checkWorkers}, {"claims", o.checkClaims}, {"overdue", o.checkOverdue}, {"leases", o.checkLeases}, {"runs", o.checkRuns}, {"failures", o.checkFailures},
		{"dead_rows", o.checkDeadRows}, {"bloat", o.checkBloat}, {"history", o.checkHistory}, {"log", o.checkWAL}, {"transactions", o.checkTransactions},
	} {
		found, err := c.within(ctx, o.checks)
		if ctx.Err() != nil {
			return findings, context.Cause(ctx)
		}
		if err != nil && !errors.Is(err, falldue.ErrNotMigrated) { // which the check of the tables says
			found = append(found, Finding{Level: Unchecked, Text: err.Error(), Advice: "grant this user the permissions in docs/rights.md, or ask the server's administrator"})
		}
		for _, f := range found {
			f.Check = c.name
			findings = append(findings, f)
		}
	}
	return findings, nil
}

// within makes a check within a time.
func (c check) within(ctx context.Context, limit time.Duration) ([]Finding, error) {
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	found, err := c.run(limited)
	if err != nil && ctx.Err() == nil && errors.Is(limited.Err(), context.DeadlineExceeded) {
		return append(found, Finding{Level: Unchecked, Text: fmt.Sprintf("the check took longer than %v", limit), Advice: "try again when the server is less busy"}), nil
	}
	return found, err
}

// fine returns the finding of a check that found nothing wrong.
func fine(format string, args ...any) []Finding {
	return []Finding{{Level: Fine, Text: fmt.Sprintf(format, args...)}}
}
