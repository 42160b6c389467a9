package ops

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/retry"
	"github.com/falldue/falldue/internal/store"
)

// BulkOptions are the settings of changes of many tasks.
type BulkOptions struct {
	// DryRun changes nothing, and counts the tasks that would be changed. The count includes tasks of [Ops.RetryMany]
	// that cannot be retried because another task holds the unique key: only the retry itself detects that.
	DryRun bool
	// Limit is the maximum number of tasks to change; 0 is all.
	Limit int
	// After is an ID. Only tasks with a greater ID are changed: set After to BulkReport.After to continue.
	After int64
	// Running makes [Ops.DeleteMany] delete tasks that run, too.
	Running bool
	// Spread sets when the tasks of [Ops.RetryMany] and [Ops.RunNowMany] fall due.
	Spread Spread
	// InPlace is [falldue.RetryOptions].InPlace for the tasks of [Ops.RetryMany]. InPlace and Spread cannot both be set.
	InPlace bool
	// Report is called after each batch with the report so far, from the goroutine of the call.
	Report func(BulkReport)
}

// BulkReport is the result of a change of many tasks.
type BulkReport struct {
	// Changed is the number of tasks that were changed, or in a dry run, would have been changed.
	Changed int64
	// Left is the number of tasks that matched the filter but were left as they are, because they run, or because another
	// caller changed them at the same time.
	Left int64
	// Failed is the number of tasks that could not be changed, and Failures describes the first 100. The database rejected
	// the change (for example, because of a trigger or a foreign key of yours), another transaction held a lock on the
	// row, or another task holds the unique key of a task to be retried ([falldue.ExistsError]).
	Failed   int64
	Failures []BulkFailure
	// Undecodable is the number of tasks that were not changed because Config.Codec cannot decode their payloads or
	// results, so it is not known whether Filter.Match matches them. [Ops.Tasks] without a Match lists them, with their
	// DecodeError. Undecodable is 0 without a Match.
	Undecodable int64
	// After is the ID up to which all tasks have been examined. To continue there, set
	// BulkOptions.After to After.
	After int64
	// DueFrom is the time at which Spread.Rate would make the next task due. To continue, set Spread.From
	// to DueFrom. It is zero in a dry run, and without a rate.
	DueFrom time.Time
	// Complete reports whether all tasks have been examined.
	Complete bool
}

// BulkFailure is a task that could not be changed.
type BulkFailure struct {
	ID  int64
	Err error
}

const (
	// maxFailures is the greatest number of failures that a report lists.
	maxFailures = 100
	// lockedTries is how often a batch is tried because of tasks that are locked.
	lockedTries = 5
	// lockedPause is the time between two tries. A worker settles tasks in less.
	lockedPause = 50 * time.Millisecond
)

// errLocked is the error for a task that another transaction has locked.
var errLocked = errors.New("falldue: another transaction has locked the task")

// CancelMany cancels the tasks that match a filter and are not finished, as [falldue.Queue.Cancel] does. It changes the
// tasks in the order of their IDs, 500 in a transaction. Matching tasks that are enqueued in the meantime are
// cancelled, too. The Phase of the filter is compared with a task's phase when the task is read.
//
// A task that cannot be changed is in the report, and does not stop the call. But the call stops if 100 tasks have
// failed and none has been changed. If ctx ends, CancelMany finishes the current batch and returns ctx's error.
// BulkReport.After is then the ID from which to continue. If a batch is repeated, no task is changed twice.
//
// Pass options at most once. The error wraps [falldue.ErrInvalid] for invalid options or an invalid filter, and for a filter
// that would match all tasks: set at least a queue, a kind or a state.
func (o *Ops) CancelMany(ctx context.Context, f Filter, opts ...BulkOptions) (BulkReport, error) {
	return o.changeMany(ctx, store.ActCancel, f, opts)
}

// DeleteMany deletes the tasks that match a filter, as [falldue.Queue.Delete] does, whatever their
// states. Running tasks stay unless BulkOptions.Running is set. Otherwise DeleteMany is like
// [Ops.CancelMany].
func (o *Ops) DeleteMany(ctx context.Context, f Filter, opts ...BulkOptions) (BulkReport, error) {
	return o.changeMany(ctx, store.ActDelete, f, opts)
}

// RetryMany retries the dead tasks that match a filter, as [falldue.Queue.Retry] does. If the filter has the State done
// or cancelled, RetryMany retries tasks in that state. BulkOptions.Spread sets when the tasks fall due. Otherwise
// RetryMany is like [Ops.CancelMany].
func (o *Ops) RetryMany(ctx context.Context, f Filter, opts ...BulkOptions) (BulkReport, error) {
	return o.changeMany(ctx, store.ActRetry, f, opts)
}

// RunNowMany ends the waits of tasks that match a filter: tasks that wait for a retry, are snoozed, or were enqueued
// for later. These tasks keep their attempts, their policies and their places in sequences. Due and running
// tasks do not change. BulkOptions.Spread sets when the tasks fall due. A task that has not failed never falls due
// later than before. Otherwise RunNowMany is like [Ops.CancelMany].
func (o *Ops) RunNowMany(ctx context.Context, f Filter, opts ...BulkOptions) (BulkReport, error) {
	return o.changeMany(ctx, store.ActRunNow, f, opts)
}

// RunNow makes a waiting task due, as [Ops.RunNowMany] does. The worker of this process looks for the task immediately,
// and so do workers that listen ([falldue.Notifications]). Other workers find the task at their next poll. The error
// wraps [falldue.ErrNotFound] if the task does not exist, [falldue.ErrWrongState] if it is finished or blocked, and
// [falldue.ErrRunning] if it runs.
func (o *Ops) RunNow(ctx context.Context, id int64) error {
	acted, err := o.store.Act(ctx, store.ActParams{Action: store.ActRunNow, IDs: []int64{id}, Wait: true})
	if err != nil {
		return err
	}
	if len(acted.Done) > 0 {
		o.inside.Acted(ctx, store.ActRunNow, acted)
		return nil
	}
	t, err := o.store.Task(ctx, id)
	switch {
	case err != nil:
		return err
	case t.ClaimedBy != "":
		return fmt.Errorf("%w: %d", falldue.ErrRunning, id)
	}
	return fmt.Errorf("%w: task %d is %s; expected open or snoozed", falldue.ErrWrongState, id, t.State)
}

// changeMany does an action to the tasks that match a filter.
func (o *Ops) changeMany(ctx context.Context, a store.Action, f Filter, list []BulkOptions) (BulkReport, error) {
	opts, err := oneOf(list)
	if err != nil {
		return BulkReport{}, err
	}
	b, err := o.newBulk(a, f, opts)
	if err != nil {
		return BulkReport{}, err
	}
	if spreads(a) && !opts.DryRun {
		now, err := o.store.Now(ctx)
		if err != nil {
			return b.report, err
		}
		b.began, b.spreader = now, newSpreader(opts.Spread, now)
	}
	for left := opts.Limit; !b.report.Complete; {
		most := store.MaxBatch
		if opts.Limit > 0 {
			most = min(most, left)
		}
		tasks, more, _, err := b.search.page(ctx, most)
		b.report.Undecodable = b.search.undecodable
		if err != nil {
			return b.report, err
		}
		left -= len(tasks)
		if err := b.change(ctx, tasks); err != nil {
			return b.report, err
		}
		b.report.After = b.search.after
		b.report.Complete = !more || opts.Limit > 0 && left <= 0
		if s := b.spreader; s != nil && opts.Spread.Rate > 0 {
			b.report.DueFrom = b.began.Add(s.next)
		}
		if opts.Report != nil {
			opts.Report(b.report)
		}
		if !b.report.Complete && ctx.Err() != nil {
			return b.report, ctx.Err()
		}
	}
	return b.report, nil
}

// spreads reports whether an action makes tasks due.
func spreads(a store.Action) bool { return a == store.ActRetry || a == store.ActRunNow }

// bulk is a change of many tasks.
type bulk struct {
	o        *Ops
	action   store.Action
	state    falldue.State // only tasks in this state, unless it is ""
	dry      bool
	inPlace  bool
	search   *search
	began    time.Time // by the database's clock
	spreader *spreader // of a retry
	report   BulkReport
}

func (o *Ops) newBulk(a store.Action, f Filter, opts BulkOptions) (*bulk, error) {
	if opts.Limit < 0 {
		return nil, invalid("Limit %d: must be 1 or more, or 0 for all", opts.Limit)
	}
	if f == (Filter{}) {
		return nil, invalid("an empty Filter, which matches all tasks: set a field, such as Queue, Kind or State")
	}
	if opts.Spread != (Spread{}) && !spreads(a) {
		return nil, invalid("Spread %+v is set: only RetryMany and RunNowMany take one", opts.Spread)
	}
	if opts.InPlace && (a != store.ActRetry || opts.Spread != (Spread{})) {
		return nil, invalid("InPlace is set: only RetryMany takes it, and without a Spread")
	}
	switch {
	case opts.Running && a != store.ActDelete:
		return nil, invalid("Running is set: only DeleteMany takes it")
	case opts.Running:
		a = store.ActDeleteAny
	}
	if err := opts.Spread.validate(); err != nil {
		return nil, err
	}
	switch {
	case a == store.ActRetry && f.State == "" && !finished(falldue.State(f.Phase)):
		f.State = falldue.StateDead
	case a == store.ActRetry && f.State != "" && !finished(f.State):
		return nil, invalid("state %q: RetryMany takes %q, %q and %q", f.State, falldue.StateDone, falldue.StateDead, falldue.StateCancelled)
	case a == store.ActRunNow && f.State != "" && f.State != falldue.StateOpen && f.State != falldue.StateSnoozed:
		return nil, invalid("state %q: RunNowMany takes %q and %q", f.State, falldue.StateOpen, falldue.StateSnoozed)
	case a == store.ActCancel && finished(f.State):
		return nil, invalid("state %q: CancelMany takes %q, %q and %q", f.State, falldue.StateBlocked, falldue.StateOpen, falldue.StateSnoozed)
	}
	s, err := o.search(f, opts.After)
	if err != nil {
		return nil, err
	}
	s.brief, s.phaseless = true, true
	s.unfinished = (a == store.ActCancel || a == store.ActRunNow) && f.State == ""
	return &bulk{o: o, action: a, state: s.f.State, dry: opts.DryRun, inPlace: opts.InPlace, search: s, report: BulkReport{After: opts.After}}, nil
}

// change changes the tasks of a page, in batches: those that the database refuses are
// found by smaller ones. Its error says that the database is unavailable.
func (b *bulk) change(ctx context.Context, tasks []falldue.TaskInfo) error {
	ids := make([]int64, 0, len(tasks))
	for _, t := range tasks {
		if (b.action == store.ActDelete || b.action == store.ActRunNow) && Running(t) {
			b.report.Left++
		} else {
			ids = append(ids, t.ID)
		}
	}
	if b.dry {
		b.report.Changed += int64(len(ids))
		return nil
	}
	batch := retry.NewBatchSize()
	for try := 1; len(ids) > 0; {
		n := min(len(ids), batch.Size)
		locked, late, err := b.act(ctx, ids[:n])
		if err == nil {
			batch.Accepted()
			ids = ids[n:]
			switch {
			case len(locked) == 0:
			case try < lockedTries && retry.Pause(ctx, lockedPause) == nil:
				ids = append(locked, ids...)
				try++
			default:
				b.failed(errLocked, locked...)
			}
			continue
		}
		failure, wait := batch.Failed(n, b.o.store.Server().Classify(err), late)
		if ctx.Err() != nil || batch.Hopeless(failure) {
			return err
		}
		if n == 1 {
			b.failed(err, ids[0])
			if b.report.Changed == 0 && b.report.Failed >= maxFailures {
				b.report.After = ids[0]
				return err // the database refuses everything, without a permission for example
			}
			ids, batch.Failures = ids[1:], 0
			continue
		}
		_ = retry.Pause(ctx, wait)
	}
	return nil
}

// act does the action to tasks in one transaction, and returns those that others have
// locked. late reports whether it timed out.
func (b *bulk) act(ctx context.Context, ids []int64) (locked []int64, late bool, err error) {
	ctx, cancel := retry.StatementContext(ctx, retry.StatementTimeout)
	defer cancel()
	p := store.ActParams{Action: b.action, IDs: ids, State: string(b.state), InPlace: b.inPlace}
	taken := func() {}
	if b.spreader != nil {
		var waits []time.Duration
		waits, taken = b.spreader.plan(len(ids))
		p.Waits = make(map[int64]time.Duration, len(ids))
		for i, id := range ids {
			p.Waits[id] = waits[i]
		}
	}
	acted, err := b.o.store.Act(ctx, p)
	if err != nil {
		return nil, ctx.Err() != nil, err
	}
	taken()
	b.report.Changed += int64(len(acted.Done))
	if len(acted.Done) > 0 {
		b.o.inside.Acted(ctx, b.action, acted)
	}
	for _, id := range slices.Sorted(maps.Keys(acted.Exists)) {
		b.failed(&falldue.ExistsError{ID: acted.Exists[id].ID}, id)
	}
	if len(acted.Done)+len(acted.Exists) == len(ids) {
		return nil, false, nil
	}
	changed := store.SetOf(acted.Done)
	p.IDs = slices.DeleteFunc(slices.Clone(ids), func(id int64) bool { return changed[id] || acted.Exists[id] != nil })
	if locked, err = b.o.store.Allowed(ctx, p); err != nil {
		return p.IDs, false, nil //nolint:nilerr // the others are changed, and these are tried again
	}
	b.report.Left += int64(len(p.IDs) - len(locked))
	return locked, false, nil
}

// failed records tasks that could not be changed.
func (b *bulk) failed(err error, ids ...int64) {
	b.report.Failed += int64(len(ids))
	for _, id := range ids {
		if len(b.report.Failures) < maxFailures {
			b.report.Failures = append(b.report.Failures, BulkFailure{id, fmt.Errorf("task %d: %w", id, err)})
		}
	}
}
