package statements

import "github.com/falldue/falldue/dialect"

// The index of tasks has the queue, the columns of the lane and updated_at. On
// servers with Caps.LaneExpression it has the text of the lane and updated_at.
// No name has a space in it, so different lanes have different texts. The texts
// of a queue's lanes are neighbors, and so are the texts of one state in a queue.

// SortsTies reports whether the index of a server has tasks of one lane and anchor in the
// order of their IDs. Otherwise, to find the first of them means to read all.
func SortsTies(s dialect.Server) bool { return !s.Caps.LaneExpression }

// laneText returns the text of a lane, made of a queue and the value of each column.
func laneText(queue string, value func(column) string) string {
	return "(" + queue + list(laneColumns.columns(), "", func(c column) string {
		if c.Type == Int {
			return " || ' ' || cast(" + value(c) + " as text)"
		}
		return " || ' ' || " + value(c)
	}) + ")"
}

// setInLane sets the fragment {in lane}, the condition that a task is in a lane
// of :queue. value returns the value of a column of the lane.
func (b *builder) setInLane(value func(column) string) {
	b.set("in lane", "queue = :queue and "+list(laneColumns.columns(), " and ", func(c column) string { return c.Name + " = " + value(c) }))
	if b.server.Caps.LaneExpression {
		b.set("in lane", "{lane text} = "+laneText("{text :queue}", value))
	}
}

// setSince sets the fragment {since moment}, the lower bound of a range of anchors that has an upper bound, too.
//
// If PostgreSQL does not know one of the two bounds of a column, it takes both together for a two-hundredth of
// the rows. It would expect fewer tasks in a lane than a claim asks for, and read and sort all of them.
// PostgreSQL does not see a pair of bounds in this form. It still makes the index's bound updated_at >= moment.
func (b *builder) setSince() {
	bound := "updated_at >= {moment "
	end := "}"
	if b.server.Caps.LaneExpression {
		bound, end = "(updated_at, id) >= ({moment ", "}, -9223372036854775808)"
	}
	b.set("since", func(moment string) string { return b.expand(bound + moment + end) })
}

// laneParam returns the parameter that has the value of a column of a lane, see
// [SetLane].
func laneParam(c column) string {
	if c.Type == Int {
		return "{int :" + c.Name + "}"
	}
	return "{text :" + c.Name + "}"
}

// setInState sets the fragment {in state}. It leads an engine whose index has the
// text of lanes to the lanes of :queue in :state, of :key alone if key is true. Other
// engines find these lanes by their columns.
func (b *builder) setInState(key bool) {
	b.set("in state", "")
	if b.server.Caps.LaneExpression {
		lanes := "{text :queue} || ' ' || {text :state} || "
		if key {
			lanes += "' ' || {text :key} || "
		}
		// In the columns' collation "!" comes right after the space.
		b.set("in state", " and {lane text} > "+lanes+"' ' and {lane text} < "+lanes+"'!'")
	}
}
