package store

import (
	"context"
	"database/sql/driver"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/internal/statements"
)

// Explained is a statement of a worker and the server's plan of it.
type Explained struct {
	Name       string
	SQL        string
	Plan       []string // by lines
	WholeTable bool     // the plan reads all tasks, or all of one of their indexes
	Err        error    // why the server did not explain it, or nil
}

// explainedBatch is the number of tasks that an explained statement changes, and of lanes of
// a statement that grows with them. With a greater number, the server would rather read all of a small
// table.
const explainedBatch = 4

// planned is a statement to explain.
type planned struct {
	name   string
	alias  string // of the table of tasks, where it has one
	stmt   statements.Stmt
	values statements.Values
	rows   []statements.Row
}

// ExplainClaims returns the statements with which a worker finds the lanes of a queue and
// claims from p's sources, with their plans. It changes nothing.
func (s *Store) ExplainClaims(ctx context.Context, p ClaimParams) ([]Explained, error) {
	place := FirstPlace(p.Queue)
	list := []planned{{"sweep", "t", s.batch("sweep", 1, statements.Sweep), statements.Values{"page": pageLanes}, []statements.Row{statements.PlaceColumns(s.server).Row(&place)}}}
	if len(p.Sources) == 0 {
		return s.explainAll(ctx, list)
	}
	if s.server.Caps.LooseScan {
		values := statements.Values{"queue": p.Queue}
		statements.SetLane(values, p.Sources[0].Lane)
		list = append(list, planned{"next_lane", "t", s.fixed("next lane", statements.NextLane), values, nil})
	}
	stmt, rows := s.headsStmt(p.Sources[:min(len(p.Sources), explainedBatch)])
	list = append(list, planned{"look", "", stmt, statements.Values{"queue": p.Queue}, rows})
	free, limited := p, p
	free.Sources, limited.Sources = nil, nil
	for _, from := range p.Sources {
		if len(from.Limits) == 0 {
			free.Sources = append(free.Sources, from)
		} else {
			limited.Sources = append(limited.Sources, from)
		}
	}
	list = append(list, s.freeClaims(free)...)
	list = append(list, s.limitedClaims(limited)...)
	return s.explainAll(ctx, list)
}

// freeClaims returns the statements that claim from sources without limits, except for the one
// that takes found tasks.
func (s *Store) freeClaims(p ClaimParams) (list []planned) {
	if len(p.Sources) == 0 {
		return nil
	}
	if statements.ClaimsAtOnce(s.server) {
		stmt, values, rows := s.claimStmt(p)
		list = append(list, planned{"claim", "t", stmt, values, rows})
		if statements.HasClaimSlots(s.server) {
			p.Slot = s.SlotName(p.Queue, nil)
			stmt, values, rows = s.claimStmt(p)
			list = append(list, planned{"claim_in_slot", "t", stmt, values, rows})
		}
		return list
	}
	for _, from := range p.Sources {
		list = append(list, planned{"claim", "t", s.claimLane(from), laneValues(p.Queue, from, p.Limit), nil})
	}
	return list
}

// limitedClaims returns the statements that read permits, and that find tasks in sources with
// limits.
func (s *Store) limitedClaims(p ClaimParams) (list []planned) {
	var names []string
	var group []wantedTasks
	var ordered []Source
	find := func() {
		if len(group) > 0 {
			stmt, values, rows, _ := s.findStmt(p, group, s.looksUp(p, group))
			list = append(list, planned{"claim_with_limits", "t", stmt, values, rows})
			group = nil
		}
	}
	for i, from := range p.Sources {
		for _, l := range from.Limits {
			if !slices.Contains(names, l.Name) && len(names) < MaxBatch {
				names = append(names, l.Name)
			}
		}
		if Ordered(from.Limits) {
			ordered = append(ordered, from)
			continue
		}
		full := len(group) == explainedBatch && s.server.Caps.Rows.Grows()
		if len(group) > 0 && (full || !s.findsTogether(p.Sources[group[0].source], from)) {
			find()
		}
		group = append(group, wantedTasks{source: i, room: p.Limit})
	}
	find()
	for sources := range slices.Chunk(ordered, explainedBatch) {
		stmt, rows := s.nextTasksStmt(sources, make([]int64, len(sources)))
		list = append(list, planned{"claim_in_order", "t", stmt, statements.Values{"queue": p.Queue}, rows})
	}
	if len(names) == 0 {
		return nil
	}
	rows := statements.LimitColumns.Rows(len(names), func(i int) *string { return &names[i] })
	permits := planned{"read_permits", "k", s.batch("permits", len(names), statements.Permits), nil, rows}
	return append([]planned{permits}, list...)
}

// ExplainChanges returns the statements that change tasks by their keys, with their plans. They
// are the statements of claims, extensions and settles. If limited is set, they include the
// statements of claims under limits. ExplainChanges changes nothing, and no task has the keys.
func (s *Store) ExplainChanges(ctx context.Context, p ClaimParams, limited bool) ([]Explained, error) {
	keys := make([]Key, explainedBatch)
	grants := make([]statements.Grant, explainedBatch)
	settled := make([]*Settlement, explainedBatch)
	for i := range keys {
		keys[i] = Key{TaskID: -1 - int64(i), Fence: 1}
		grants[i] = statements.Grant{Permit: keys[i].TaskID, Key: keys[i]}
		settled[i] = &Settlement{Settlement: statements.Settlement{Key: keys[i], State: statements.StateOpen}}
	}
	fences := statements.FenceColumns.Rows(len(keys), func(i int) *Key { return &keys[i] })
	values := statements.Values{
		"worker": p.Worker, "lease": p.Lease.Microseconds(), "running": statements.StateOpen, "most": maxAttempts, "token": int64(math.MaxInt64),
	}
	var list []planned
	if limited {
		rows := statements.GrantColumns.Rows(len(grants), func(i int) *statements.Grant { return &grants[i] })
		list = append(list, planned{"take_permits", "", s.batch("take permits", len(grants), statements.TakePermits), values, rows})
	}
	if limited || !statements.ClaimsAtOnce(s.server) {
		list = append(list, planned{"take", "t", s.batch("take", len(keys), statements.Take), values, fences})
	}
	list = append(list, planned{"extend", "t", s.batch("extend", len(keys), statements.Extend), values, fences})
	for i, settle := range []settling{s.settlingGone(p.Worker, settled), s.settlingAlike(p.Worker, settled), s.settlingEach(p.Worker, settled)[0]} {
		name := []string{"settle_done", "settle_alike", "settle_each"}[i]
		list = append(list, planned{name, "t", settle.stmt, settle.values, settle.rows})
	}
	return s.explainAll(ctx, list)
}

// explainAll explains statements, each text once under a name.
func (s *Store) explainAll(ctx context.Context, list []planned) ([]Explained, error) {
	var explained []Explained
	seen := map[[2]string]bool{}
	for _, p := range list {
		key := [2]string{p.name, p.stmt.SQL}
		if seen[key] {
			continue
		}
		seen[key] = true
		e, err := s.explained(ctx, p)
		if err != nil {
			return nil, err
		}
		explained = append(explained, e)
	}
	return explained, nil
}

func (s *Store) explained(ctx context.Context, p planned) (Explained, error) {
	e := Explained{Name: p.name, SQL: p.stmt.SQL}
	tasks := regexp.QuoteMeta(s.tables.Prefix + "tasks")
	if p.alias != "" {
		tasks += "|" + p.alias
	}
	whole, err := regexp.Compile(strings.ReplaceAll(s.server.Caps.WholeTable, "TABLE", "(?:"+tasks+")"))
	if err != nil {
		return e, fmt.Errorf("Caps.WholeTable: %w", err)
	}
	err = s.seldom(ctx, statements.Explain(s.server, p.stmt), p.values, p.rows, func(r row) error {
		e.Plan = append(e.Plan, planLine(r))
		return nil
	})
	e.WholeTable = slices.ContainsFunc(e.Plan, whole.MatchString)
	if class := s.server.Classify(err); err != nil && ctx.Err() == nil && (class == dialect.Other || class == dialect.ReadOnly) {
		e.Err, err = err, nil // for example, the user lacks the permission for the statement
	}
	return e, s.explain(err)
}

// planLine returns a row of a plan as text: its only column, the last of SQLite's four, or
// all columns side by side.
func planLine(r row) string {
	cells := make([]string, len(r))
	for i, v := range r {
		cells[i] = cellText(v)
	}
	if len(r) == 4 {
		if _, isID := r[0].(int64); isID {
			return cells[3]
		}
	}
	return strings.Join(cells, " | ")
}

func cellText(v driver.Value) string {
	if v == nil {
		return "–"
	}
	if text, err := statements.TextIn(v); err == nil {
		return text
	}
	if n, err := statements.WholeIn(v); err == nil {
		return strconv.FormatInt(n, 10)
	}
	return fmt.Sprint(v)
}
