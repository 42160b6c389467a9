package statements_test

import (
	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/internal/statements"
)

// flowStatements are the statements of tasks that run after others.
func flowStatements(s dialect.Server, room int) map[string]statements.Stmt {
	return map[string]statements.Stmt{
		"put_waiters":      statements.PutWaiters(s, tables, room),
		"put_edges":        statements.PutEdges(s, tables, room),
		"block":            statements.Block(s, tables, room),
		"mark_edges":       statements.MarkEdges(s, tables, room),
		"edge_page":        statements.EdgePage(s, tables),
		"correct_edge":     statements.CorrectEdge(s, tables),
		"waiters_of":       statements.WaitersOf(s, tables, room),
		"waiters_by_id":    statements.WaitersByID(s, tables, room),
		"waiters":          statements.Waiters(s, tables),
		"count_edges":      statements.CountEdges(s, tables),
		"members":          statements.Members(s, tables),
		"neighbors_before": statements.Neighbors(s, tables, room, false),
		"neighbors_after":  statements.Neighbors(s, tables, room, true),
		"edges_of":         statements.EdgesOf(s, tables, room),
		"pending_edges":    statements.PendingEdges(s, tables),
		"blocked_tasks":    statements.BlockedTasks(s, tables, room),
		"open_waiters":     statements.OpenWaiters(s, tables, room),
		"cancel_waiters":   statements.CancelWaiters(s, tables, room),
		"drop_edges":       statements.DropEdges(s, tables, room),
		"drop_waiters":     statements.DropWaiters(s, tables, room),
	}
}
