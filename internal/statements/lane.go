package statements

import "github.com/falldue/falldue/dialect"

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

// LaneIndexes counts the indexes of :table called :name that have a lane in one
// text: none before the migration that makes it so. For engines with
// Caps.LaneText.
func LaneIndexes(s dialect.Server) Stmt {
	b := newBuilder(s)
	b.add("select count(*) from pg_index i join pg_class c on c.oid = i.indexrelid\nwhere i.indrelid = ", b.typed(Column{"table", Text}),
		"::regclass and c.relname = ", b.arg("name"), " and i.indexprs is not null")
	return b.stmt()
}
