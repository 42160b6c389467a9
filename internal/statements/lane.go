package statements

// The index of tasks has the columns of the lane and updated_at; on engines with
// Caps.LaneText it has laneText and updated_at. No name has a space, so that
// different lanes are different texts, and those of a queue, and of a state in
// it, stand side by side.

// laneText is a lane in one text. prefix is what the columns but the queue are
// of: "", or an alias and a dot.
func laneText(queue, prefix string) string {
	const sep = " || ' ' || "
	return "(" + queue + sep + prefix + "state" + sep + "cast(" + prefix + "priority as text)" + sep +
		prefix + "kind" + sep + prefix + "policy" + sep + "cast(" + prefix + "attempts as text))"
}

// lanesOf leads an engine that has lanes in one text to those of :queue in
// :state; the others find them by the columns.
func (b *builder) lanesOf() string {
	if !b.server.Caps.LaneExpression {
		return ""
	}
	lane, of := laneText("queue", ""), b.typed(Column{"queue", Text})+" || ' ' || "+b.typed(Column{"state", Text})
	// In the columns' collation "!" comes right after the space.
	return " and " + lane + " > " + of + " || ' ' and " + lane + " < " + of + " || '!'"
}
