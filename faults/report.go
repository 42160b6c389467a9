package faults

import (
	"context"
	"fmt"

	"github.com/jmoiron/sqlx"

	"github.com/falldue/falldue"
)

// One job in reportsEvery reports progress when a run of it begins, and when that ends.
const reportsEvery = 4

func (j Job) reports() bool { return numberOf(j.Key)%reportsEvery == 1 }

// report reports the progress of a run of a job that does so. The message names the claim.
func report(t falldue.Task[Job], fraction float64) {
	if t.Args.reports() {
		t.Progress(fraction, reportOf(t.Fence))
	}
}

func reportOf(fence int64) string { return fmt.Sprint("claim ", fence) }

// Report is the progress that the database holds of a task.
type Report struct {
	Task    int64  `db:"task_id"`
	Fence   int64  `db:"fence"`
	Message string `db:"message"`
}

// readReports reads the progress of all tasks, by their IDs.
func readReports(ctx context.Context, db *sqlx.DB) (map[int64]Report, error) {
	var list []Report
	if err := db.SelectContext(ctx, &list, "select task_id, fence, message from falldue_progress"); err != nil {
		return nil, err
	}
	reports := make(map[int64]Report, len(list))
	for _, r := range list {
		reports[r.Task] = r
	}
	return reports, nil
}

// staleReport finds progress that a run reported after it had lost its task, and the loss of
// what the last run of a task has reported.
func (c Checker) staleReport(_ *life, r Row) string {
	switch p := r.Report; {
	case !r.Reports || p.Fence == 0 && r.State != "done":
		return ""
	case p.Fence == 0:
		return fmt.Sprintf("it is done by claim %d, which has reported progress, and has none", r.Result)
	case p.Fence > r.Fence || p.Message != reportOf(p.Fence) || r.State == "done" && p.Fence != r.Result:
		return fmt.Sprintf("its progress is %q of claim %d, the last claim is %d, and it is %s by claim %d", p.Message, p.Fence, r.Fence, r.State, r.Result)
	}
	return ""
}
