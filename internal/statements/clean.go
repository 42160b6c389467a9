package statements

import (
	"math"

	"github.com/falldue/falldue/dialect"
)

// FinishedLanes finds lanes as [Sweep] does, of tasks in one final state, or blocked. Its cost does not
// depend on the number of kept tasks. The batch has [PlaceColumns]. Parameters: page, state. On
// servers with Caps.LooseScan it finds one lane of one queue in each run, as [NextLane] does.
func FinishedLanes(s dialect.Server, tables dialect.Tables, size int) Stmt {
	b := newBuilder(s, tables)
	if s.Caps.LooseScan {
		return b.nextLane(1)
	}
	return b.jumps(PlaceColumns(s).columns(), size, "state = :state and ", laneColumns[1:], "state = :state")
}

// FirstFinished returns the lane with which [FinishedLanes] finds the first lane of a state.
func FirstFinished(state string) Lane { return Lane{State: state, Priority: math.MinInt} }

// FirstFinishedPlace is the place before the lanes of a queue in a final state.
func FirstFinishedPlace(queue, state string) Place {
	return Place{Queue: queue, Lane: FirstFinished(state), Ending: queue + " " + state + "!"}
}

// Clean selects up to :limit tasks of one lane that have been finished for :keep microseconds, as
// [FinishedColumns]. It selects tasks from :since on up to :upto, the oldest first, except for the first :skip.
//
// Clean locks the tasks, so that none is opened again before [Forget] and [Drop] delete them. Where
// the engine can, it leaves out tasks that other transactions have locked.
// Parameters: queue, the lane (see [SetLane]), since, upto, keep, skip, limit.
func Clean(s dialect.Server, tables dialect.Tables) Stmt {
	b := newBuilder(s, tables)
	b.setInLane(laneParam)
	b.set("finished", FinishedColumns.list("", map[string]string{"anchor": "updated_at"}))
	b.setSince()
	return b.stmt(`
select {finished} from {tasks}
where {in lane} and {since {int :since}} and updated_at <= {shift {now}, -({int :keep})} and updated_at <= {moment {int :upto}}
order by updated_at limit :limit offset :skip{for update}`)
}

// DueIn selects the first :limit due tasks of a lane, from the anchor :since on, as [DueColumns]. Parameters: queue, the
// lane (see [SetLane]), since, limit.
func DueIn(s dialect.Server, tables dialect.Tables) Stmt {
	b := newBuilder(s, tables)
	b.setInLane(laneParam)
	b.set("due", DueColumns.list("", map[string]string{"clock": "{now}"}))
	b.setSince()
	return b.stmt(`
select {due} from {tasks}
where {in lane} and {since {int :since}} and updated_at <= {now}
order by updated_at limit :limit`)
}

// FirstToKeep selects the anchor of the task that is followed by :others tasks in its lane, if there are as many. It
// reads no more of the index than these tasks. Parameters: queue, the lane (see [SetLane]), others.
func FirstToKeep(s dialect.Server, tables dialect.Tables) Stmt {
	b := newBuilder(s, tables)
	b.setInLane(laneParam)
	return b.stmt(`
select {micros updated_at} from {tasks}
where {in lane} order by updated_at desc limit 1 offset :others`)
}
