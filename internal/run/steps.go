package run

import (
	"context"

	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/internal/steplog"
	"github.com/falldue/falldue/internal/store"
)

// Steps returns the steps of the task.
func (r *Run) Steps() *steplog.Steps {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.steps == nil {
		c, kind := r.Claim, r.Claim.From.Kind
		cfg := steplog.Config{
			Claim: store.Key{TaskID: c.ID, Fence: c.Fence}, Max: r.MaxResult, Table: r.StepTable, Worker: r.WorkerID,
			Stopping: func() bool { return r.Stop.Err() != nil },
			Gone: func() bool {
				lost, _ := r.Lease.State()
				return lost
			},
			Ends:   r.Lease.LeftToDoneTx,
			Encode: func(column string, json []byte) (string, error) { return r.Encode(kind, column, c.ID, json) },
			Decode: func(column string, stored []byte) ([]byte, error) { return r.Decode(kind, column, c.ID, stored) },
		}
		if c.Previous.Valid {
			cfg.Lost = c.Fence - 1
		}
		r.steps = steplog.New(cfg)
	}
	return r.steps
}

// settleSteps adds to a settlement whether the steps of the task are deleted. anew reports whether the
// task begins anew.
func (r *Run) settleSteps(e *store.Settlement, anew bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e.ForgetSteps = r.steps != nil && (anew || e.State == statements.StateDone && !e.RetainDone)
}

// stepOfLost returns the name of the step in which the previous run was lost, or "" if the handler has
// used no steps since then.
func (r *Run) stepOfLost() string {
	r.mu.Lock()
	steps := r.steps
	r.mu.Unlock()
	return steps.LostIn()
}

// stepOf returns the name of the step that an earlier claim, with a fence, had begun and not finished, or "".
func (r *Run) stepOf(ctx context.Context, fence int64) (name string) {
	list, err := r.StepTable.Steps(ctx, r.Claim.ID)
	if err != nil {
		return ""
	}
	for _, step := range list {
		if step.Fence == fence && !step.Result.Valid {
			name = step.Name
		}
	}
	return name
}
