package statements

import "github.com/falldue/falldue/dialect"

// FinishedLanes finds what [Sweep] finds, for the tasks of one final state, or blocked. Its cost
// does not depend on how many tasks are kept. Parameters: queue, state. On servers
// with Caps.LooseScan it finds one lane in each run, the first after the one that the
// parameters of [SetLane] name.
func FinishedLanes(s dialect.Server, tables dialect.Tables) Stmt {
	b := newBuilder(s, tables)
	if s.Caps.LooseScan {
		return b.nextLane(1)
	}
	b.set("first state", "state = :state")
	b.set("before first", "{text :queue} || ' ' || {text :state} || ' '")
	b.set("end", "{text :queue} || ' ' || {text :state} || '!'")
	b.set("states", "state = {text :state}")
	return b.jumps("state = :state and ", laneColumns[1:])
}

// FirstFinished returns the lane to pass to [FinishedLanes] for the first one.
func FirstFinished(state string) Lane { return Lane{State: state, Priority: -1 << 31} }

// Clean selects up to :limit tasks of one lane that have been finished for :keep
// microseconds, the oldest first, from :since on, but for the first :skip, as
// [FinishedColumns]. [Forget] and [Drop] delete them. It locks them, so that none is opened
// again before that, and leaves out what others have locked, where it can. Parameters: queue,
// those of [SetLane], since, keep, skip, limit.
func Clean(s dialect.Server, tables dialect.Tables) Stmt {
	b := newBuilder(s, tables)
	b.setInLane(laneParam)
	b.set("finished", FinishedColumns.list("", map[string]string{"anchor": "updated_at"}))
	return b.stmt(`
select {finished} from {tasks}
where {in lane} and updated_at >= {moment {int :since}} and updated_at <= {shift {now}, -({int :keep})}
order by updated_at limit :limit offset :skip{for update}`)
}
