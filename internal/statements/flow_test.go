package statements_test

import (
	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/internal/statements"
)

// flowStatements are the statements of tasks that run after others.
func flowStatements(s dialect.Server, room int) map[string]statements.Stmt {
	return map[string]statements.Stmt{
		"put_waiters":    statements.PutWaiters(s, tables, room),
		"put_edges":      statements.PutEdges(s, tables, room),
		"block":          statements.Block(s, tables, room),
		"mark_edges":     statements.MarkEdges(s, tables, room),
		"correct_edge":   statements.CorrectEdge(s, tables),
		"stale_edges":    statements.StaleEdges(s, tables),
		"waiters_of":     statements.WaitersOf(s, tables, room),
		"read_waiter":    statements.ReadWaiter(s, tables),
		"waiters":        statements.Waiters(s, tables),
		"pending_member": statements.PendingMember(s, tables),
		"count_edges":    statements.CountEdges(s, tables),
		"members":        statements.Members(s, tables),
		"pending_edges":  statements.PendingEdges(s, tables),
		"open_waiter":    statements.OpenWaiter(s, tables),
		"cancel_waiter":  statements.CancelWaiter(s, tables),
		"drop_edges":     statements.DropEdges(s, tables),
		"drop_waiter":    statements.DropWaiter(s, tables),
	}
}
