package tasktest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/hooks"
	"github.com/falldue/falldue/internal/pattern"
	"github.com/falldue/falldue/ops"
)

// whatWaits says in which queues and for which kinds RunOne looks, and why it does not run the
// tasks that are not finished.
func whatWaits(t testing.TB, q *falldue.Queue) string {
	t.Helper()
	queues, kinds := hooks.Of[queue](q).Handles()
	if len(kinds) == 0 {
		return "the queue has no handlers: call Handle before RunOne"
	}
	var text strings.Builder
	fmt.Fprintf(&text, "RunOne looks in the queues %q for the kinds %q, and ", queues, kinds)
	var list []falldue.TaskInfo
	for _, state := range []falldue.State{falldue.StateOpen, falldue.StateSnoozed, falldue.StateBlocked} {
		page, err := ops.New(q).Tasks(t.Context(), ops.Filter{State: state}, ops.ListOptions{Limit: maxListed + 1})
		if err != nil {
			t.Fatalf("tasktest: list the tasks that wait: %v", err)
		}
		list = append(list, page.Tasks...)
	}
	if len(list) == 0 {
		return text.String() + "none waits or runs"
	}
	text.WriteString("these wait or run:")
	for i, task := range list {
		if i == maxListed {
			text.WriteString("\n\tand more")
			break
		}
		fmt.Fprintf(&text, "\n\ttask %d of kind %q in queue %q is %s", task.ID, task.Kind, task.Queue, task.Phase)
		switch {
		case !pattern.In(queues, task.Queue):
			text.WriteString("; the queue is not in Config.Queues")
		case !slices.Contains(kinds, task.Kind):
			text.WriteString("; its kind has no handler")
		case task.Phase == falldue.PhaseScheduled, task.Phase == falldue.PhaseSnoozed:
			fmt.Fprintf(&text, " for another %v", task.UpdatedAt.Sub(task.Now).Round(time.Second))
		case task.Phase == falldue.PhaseBackingOff:
			fmt.Fprintf(&text, " after attempt %d: %.200s", task.Attempts, task.LastError)
		case task.Phase == falldue.PhaseDue:
			text.WriteString(", and could not be claimed: another transaction may hold its row lock")
		}
	}
	return text.String()
}
