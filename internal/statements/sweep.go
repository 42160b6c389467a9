package statements

import (
	"strconv"
	"strings"

	"github.com/falldue/falldue/dialect"
)

// Sweep finds the lanes of a queue that hold waiting tasks, jumping from lane
// to lane in the index, so that its cost grows with the lanes and not with the
// rows. It returns of each: state, priority, kind, policy, attempts, and the
// anchor of its first row and the database's now, in microseconds since 1970.
// Parameters: queue.
func Sweep(s dialect.Server, tables dialect.Tables) Stmt {
	b, clock, tasks := newBuilder(s), s.Clock(), tables.Name(s, "tasks")
	found := func(anchor string) string {
		return "state, priority, kind, policy, attempts, " + clock.Micros(anchor) + ", " + clock.Micros(clock.Now)
	}
	switch {
	case s.Caps.LooseScan:
		b.add("select ", found("min(updated_at)"), "\nfrom ", tasks,
			"\nwhere queue = ", b.arg("queue"), " and state in ('open', 'snoozed')",
			"\ngroup by queue, state, priority, kind, policy, attempts")
	case s.Caps.LaneExpression:
		queue, lane := b.typed(Column{"queue", Text}), laneText("queue", "")
		after := func(last string) string {
			return "(select " + lane + " as lane, queue, state, priority, kind, policy, attempts, updated_at from " + tasks +
				"\nwhere " + lane + " > " + last + " and " + lane + " < " + queue + " || '!'\norder by " + lane + ", updated_at limit 1)"
		}
		b.add("with recursive found as (", after(queue+" || ' "+firstWaiting+"'"),
			"\nunion all\nselect next.* from found cross join lateral ", after("found.lane"), " next)\nselect ", found("updated_at"),
			// A queue whose name has a space, in rows that somebody edited, may stand between.
			"\nfrom found where queue = ", queue, " and state in ('open', 'snoozed')")
	default:
		const columns = "state, priority, kind, policy, attempts"
		const row = "t.state, t.priority, t.kind, t.policy, t.attempts, t.updated_at"
		after := func(last string) string {
			return "(select id from " + tasks + "\nwhere queue = " + b.arg("queue") + " and " + last + "\norder by " + columns + ", updated_at limit 1)"
		}
		b.add("with recursive found as (select ", row, " from ", tasks, " t where t.id = ", after("state >= '"+firstWaiting+"'"),
			// A plus makes a column a value. SQLite compares two columns with each
			// other in a way that its indexes do not serve.
			"\nunion all\nselect ", row, " from found f join ", tasks, " t on t.id = ", after("("+columns+") > (+f.state, +f.priority, +f.kind, +f.policy, +f.attempts)"),
			") select ", found("updated_at"), "\nfrom found where state in ('open', 'snoozed')")
	}
	return b.stmt()
}

// firstWaiting is the first state that sorts after those of finished tasks.
// States of a newer release may sort anywhere.
const firstWaiting = StateOpen

// NextLane finds what [Sweep] finds, a lane a run: the first one after (state,
// priority, kind, policy, attempts) that holds waiting tasks. It costs the same
// whatever the engine thinks of its index. For engines with Caps.LooseScan.
// Parameters: queue, state, priority, kind, policy, attempts.
func NextLane(s dialect.Server, tables dialect.Tables) Stmt {
	b, clock := newBuilder(s), s.Clock()
	columns := []string{"state", "priority", "kind", "policy", "attempts"}
	// The next lane has the first so many columns in common with the last one,
	// and a greater value in the next: as many as possible. Each of these is a
	// range that begins where it ends.
	b.add("select state, priority, kind, policy, attempts, anchor, now from (")
	for same := len(columns) - 1; same >= 0; same-- {
		b.add("(select ", strconv.Itoa(same), " as same, state, priority, kind, policy, attempts, ", clock.Micros("updated_at"), " as anchor, ", clock.Micros(clock.Now), " as now",
			" from ", tables.Name(s, "tasks"), " where queue = ", b.arg("queue"))
		for _, c := range columns[:same] {
			b.add(" and ", c, " = ", b.arg(c))
		}
		b.add(" and ", columns[same], " > ", b.arg(columns[same]))
		if same == 0 {
			b.add(" and state in ('open', 'snoozed')")
		}
		b.add("\norder by ", strings.Join(columns[same:], ", "), ", updated_at limit 1)")
		if same > 0 {
			b.add("\nunion all ")
		}
	}
	b.add(") n\norder by same desc limit 1")
	return b.stmt()
}

// RefreshStatistics makes an engine with Caps.RefreshStatistics count its lanes again, by what its
// statistics say now.
func RefreshStatistics(s dialect.Server, tables dialect.Tables) Stmt {
	b := newBuilder(s)
	b.add("show index from ", tables.Name(s, "tasks"))
	return b.stmt()
}
