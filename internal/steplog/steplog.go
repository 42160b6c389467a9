// Package steplog records the steps of a task during a run, and says which of them are done. Package steps has the API.
package steplog

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/internal/outcome"
	"github.com/falldue/falldue/internal/retry"
	"github.com/falldue/falldue/internal/storable"
	"github.com/falldue/falldue/internal/store"
)

// Max is the greatest number of steps of a task.
const Max = 1000

// These are errors of steps. The public packages document them.
var (
	// ErrChanged means that a handler has other steps than those that are recorded.
	ErrChanged = errors.New("falldue: steps have changed")
	// ErrStep is wrapped by errors of handlers that use steps in a wrong way.
	ErrStep = errors.New("step")
)

// Steps are the steps of a task during one of its runs, for package steps.
type Steps struct {
	Config
	mu     sync.Mutex
	loaded bool
	rows   []store.StepRow // recorded ones, in their order
	next   int             // how many steps the run has passed
	active *Step           // which runs now, or nil
	failed string          // the name of the last step, if it has failed
	unable string          // the name of a step that was not able to begin
	lostIn string          // the name of the step in which the run before was lost
}

// Config says which task it is and where its steps are.
type Config struct {
	Claim store.Key
	// Lost is the fence of the run before if its worker vanished, or 0.
	Lost int64
	Max  int // size of a result, and of a cursor
	// Stopping reports whether the worker stops, Gone whether the run has lost its lease.
	Stopping, Gone func() bool
	// Ends reports whether the handler has called DoneTx.
	Ends   func() bool
	Encode func(column string, json []byte) (string, error)
	Decode func(column string, stored []byte) ([]byte, error)
	Table  Table
	Worker string
}

// Table stores steps.
type Table interface {
	Steps(ctx context.Context, id int64) ([]store.StoredStep, error)
	PutStep(ctx context.Context, tx store.Tx, worker string, step *store.StepRow) (mine bool, err error)
	Classify(err error) dialect.Class
}

// Step is a step that has begun, or is done.
type Step struct {
	steps  *Steps
	row    store.StepRow
	wrote  bool // a result was written, perhaps in an open transaction
	result []byte
	cursor []byte
}

// New returns the steps of a task.
func New(cfg Config) *Steps { return &Steps{Config: cfg} }

// LostIn returns the name of the step in which the run before was lost, or "" if it is not known. s may be nil.
func (s *Steps) LostIn() string {
	if s == nil {
		return ""
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lostIn
}

// CountLost counts the run before in the step in which it was lost, for a task whose handler does not
// run any more, and returns the name of the step, or "".
func (s *Steps) CountLost(ctx context.Context) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.Lost == 0 || s.load(ctx) != nil || s.lostIn == "" {
		return s.lostIn
	}
	for _, row := range s.rows {
		if s.lost(row) {
			row.Crashes, row.Fence = row.Crashes+1, s.Claim.Fence
			_ = s.put(ctx, &row) // the task is dead all the same
		}
	}
	return s.lostIn
}

// load reads the recorded steps. The first claim of a task finds none.
func (s *Steps) load(ctx context.Context) error {
	if s.loaded || s.Claim.Fence == 1 && s.rows == nil {
		s.loaded = true
		return nil
	}
	list, err := s.Table.Steps(ctx, s.Claim.TaskID)
	if err != nil {
		return fmt.Errorf("read the steps of task %d: %w", s.Claim.TaskID, err)
	}
	s.rows = make([]store.StepRow, len(list))
	for i, one := range list {
		if one.N != i+1 {
			return fmt.Errorf("%w: the row of step %d is missing, but there is a row of step %d; forget the steps of task %d", ErrChanged, i+1, one.N, s.Claim.TaskID)
		}
		s.rows[i] = one.StepRow
		if s.lost(one.StepRow) {
			s.lostIn = one.Name
		}
	}
	s.loaded = true
	return nil
}

// lost reports whether the run before was lost while a step ran.
func (s *Steps) lost(row store.StepRow) bool {
	return s.Lost > 0 && row.Fence == s.Lost && !row.Result.Valid
}

// Begin begins a step, or returns one that is done. The error of a step that does not begin says why.
func (s *Steps) Begin(ctx context.Context, name string) (*Step, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := storable.CheckName("name", name); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrStep, err)
	}
	if s.active != nil {
		return nil, fmt.Errorf("%w %q begins while step %q runs: wait until that step has returned", ErrStep, name, s.active.row.Name)
	}
	if s.unable != "" && s.unable != name {
		return nil, fmt.Errorf("%w %q begins after step %q failed to begin: the handler must return that step's error", ErrStep, name, s.unable)
	}
	if err := s.load(ctx); err != nil {
		return nil, err
	}
	at := s.next
	if s.failed != "" && s.failed != name {
		at++ // the handler continues without the step that has failed
	}
	step, err := s.at(at, name)
	if err != nil {
		return nil, err
	}
	s.next, s.failed = at, ""
	if step.row.Result.Valid {
		if step.result, err = s.Decode(stepColumn(name), []byte(step.row.Result.V)); err != nil {
			return nil, fmt.Errorf("result of step %q: %w", name, err)
		}
		s.next++
		return step, nil
	}
	if step.row.Cursor.Valid {
		if step.cursor, err = s.Decode(cursorColumn(name), []byte(step.row.Cursor.V)); err != nil {
			return nil, fmt.Errorf("cursor of step %q: %w", name, err)
		}
	}
	if err := s.begin(ctx, step); err != nil {
		s.unable, s.loaded = name, false
		return nil, err
	}
	s.active, s.unable = step, ""
	return step, nil
}

// at returns the step with an index and a name.
func (s *Steps) at(i int, name string) (*Step, error) {
	if passed := slices.IndexFunc(s.rows[:min(i, len(s.rows))], func(r store.StepRow) bool { return r.Name == name }); passed >= 0 {
		return nil, fmt.Errorf("%w %q is step %d and step %d of one run: names must differ", ErrStep, name, passed+1, i+1)
	}
	if i >= Max {
		return nil, fmt.Errorf("%w %q is step %d: a task can have at most %d steps; use a cursor for many similar steps", ErrStep, name, i+1, Max)
	}
	fresh := &Step{steps: s, row: store.StepRow{Key: s.Claim, N: i + 1, Name: name, Begins: 1}}
	if i >= len(s.rows) {
		return fresh, nil
	}
	row := s.rows[i]
	switch {
	case row.Name == name:
		return &Step{steps: s, row: row}, nil
	case !row.Result.Valid && !row.Cursor.Valid && i == len(s.rows)-1:
		return fresh, nil // nothing of the step with the other name is recorded
	}
	return nil, fmt.Errorf("%w: step %d is %q, and is recorded as %q; run the code that recorded it, or forget the steps of task %d", ErrChanged, i+1, name, row.Name, s.Claim.TaskID)
}

// begin records that a step begins.
func (s *Steps) begin(ctx context.Context, step *Step) error {
	name := step.row.Name
	if s.Stopping() {
		return fmt.Errorf("step %q has not begun: %w", name, outcome.ErrStopping)
	}
	if ctx.Err() != nil {
		return fmt.Errorf("step %q has not begun: %w", name, context.Cause(ctx))
	}
	row := step.row
	if s.lost(row) {
		row.Crashes++
	}
	row.Fence, row.Begins = s.Claim.Fence, 1
	if err := s.put(ctx, &row); err != nil {
		return fmt.Errorf("step %q has not begun: %w", name, err)
	}
	row.Begins = 0
	step.row = row
	s.note(row)
	return nil
}

// note keeps a row as it is recorded.
func (s *Steps) note(row store.StepRow) {
	if i := row.N - 1; i < len(s.rows) {
		s.rows[i] = row
	} else {
		s.rows = append(s.rows, row)
	}
}

// put stores a row. While the database is unavailable, it tries again until ctx ends.
func (s *Steps) put(ctx context.Context, row *store.StepRow) error {
	for failures := 0; ; failures++ {
		if s.Gone() {
			return outcome.ErrLeaseLost
		}
		limited, cancel := retry.StatementContext(ctx, retry.StatementTimeout)
		mine, err := s.Table.PutStep(limited, nil, s.Worker, row)
		cancel()
		switch {
		case err == nil && !mine:
			return outcome.ErrLeaseLost
		case err == nil:
			return nil
		case ctx.Err() != nil || retry.KindOf(s.Table.Classify(err), false) != retry.Outage:
			return err
		}
		if retry.Pause(ctx, retry.ErrorPause(failures)) != nil {
			return err
		}
	}
}

// putTx stores a row in a transaction of the caller's.
func (s *Steps) putTx(ctx context.Context, tx store.Tx, row *store.StepRow) error {
	if s.Gone() {
		return outcome.ErrLeaseLost
	}
	mine, err := s.Table.PutStep(ctx, tx, s.Worker, row)
	if err == nil && !mine {
		return outcome.ErrLeaseLost
	}
	return err
}

// longest is how long a step that is done may try to be recorded.
const longest = time.Hour

// stepColumn and cursorColumn name the places of a step's result and cursor, see falldue.Place.
func stepColumn(name string) string   { return "step:" + name }
func cursorColumn(name string) string { return "cursor:" + name }

// Done returns the recorded result of a step that is done.
func (p *Step) Done() (result []byte, done bool) { return p.result, p.result != nil }

// Cursor returns the cursor that was saved last, or nil.
func (p *Step) Cursor() []byte { return p.cursor }

// Save saves a cursor, in a transaction of the caller's unless tx is nil.
func (p *Step) Save(ctx context.Context, tx store.Tx, json []byte) error {
	stored, err := p.encode("cursor", cursorColumn(p.row.Name), json)
	if err != nil {
		return err
	}
	row := p.row
	row.Cursor = stored
	if tx != nil {
		err = p.steps.putTx(ctx, tx, &row)
	} else {
		err = p.steps.put(ctx, &row)
	}
	if err != nil {
		return fmt.Errorf("the cursor of step %q is not saved: %w", p.row.Name, err)
	}
	p.row.Cursor = stored
	return nil
}

// Stopping returns an error that wraps [outcome.ErrStopping] if the worker stops.
func (p *Step) Stopping() error {
	if !p.steps.Stopping() {
		return nil
	}
	return fmt.Errorf("step %q stops where it is: %w", p.row.Name, outcome.ErrStopping)
}

// Finish records the result of a step. It tries for a while even if ctx has ended: the work is done.
func (p *Step) Finish(ctx context.Context, json []byte) error {
	stored, err := p.encode("result", stepColumn(p.row.Name), json)
	if err != nil {
		return err
	}
	row := p.row
	row.Result, row.Cursor = stored, sql.Null[string]{}
	later, cancel := retry.DelayedContext(ctx, longest, retry.LastSettles)
	defer cancel()
	if err := p.steps.put(later, &row); err != nil {
		return fmt.Errorf("step %q is not recorded: %w", p.row.Name, err)
	}
	p.row = row
	return nil
}

// FinishTx records the result of a step in a transaction of the caller's, which might fail to commit.
func (p *Step) FinishTx(ctx context.Context, tx store.Tx, json []byte) error {
	stored, err := p.encode("result", stepColumn(p.row.Name), json)
	if err != nil {
		return err
	}
	row := p.row
	row.Result, row.Cursor = stored, sql.Null[string]{}
	if err := p.steps.putTx(ctx, tx, &row); err != nil {
		return fmt.Errorf("step %q is not recorded: %w", p.row.Name, err)
	}
	p.wrote = true
	return nil
}

func (p *Step) encode(what, column string, json []byte) (stored sql.Null[string], err error) {
	if len(json) > p.steps.Max {
		return stored, fmt.Errorf("%w %q: %s of %d bytes: must be at most %d (Config.MaxPayload)", ErrStep, p.row.Name, what, len(json), p.steps.Max)
	}
	text, err := p.steps.Encode(column, json)
	if err != nil {
		return stored, fmt.Errorf("%s of step %q: %w", what, p.row.Name, err)
	}
	return store.NotNull(text), nil
}

// Committed reports whether the transaction of FinishTx has committed.
func (p *Step) Committed(ctx context.Context) (bool, error) {
	if !p.wrote {
		return false, nil
	}
	if p.steps.Ends() {
		return true, nil // the run fails if the transaction of DoneTx has not committed
	}
	later, cancel := retry.DelayedContext(ctx, retry.StatementTimeout, retry.LastSettles)
	defer cancel()
	list, err := p.steps.Table.Steps(later, p.row.TaskID)
	if err != nil {
		return false, err
	}
	for _, one := range list {
		if one.N == p.row.N && one.Name == p.row.Name && one.Fence == p.row.Fence && one.Result.Valid {
			p.row = one.StepRow
			return true, nil
		}
	}
	return false, nil
}

// End ends a step: done if it has been recorded, and failed otherwise.
func (p *Step) End(done bool) {
	s := p.steps
	s.mu.Lock()
	defer s.mu.Unlock()
	s.active = nil
	if done {
		s.note(p.row)
		s.next++
		return
	}
	s.failed, s.loaded = p.row.Name, false // a write may have taken effect though it returned an error
}
