// Package statements writes the SQL of the queue: one function a statement,
// which takes a server and returns a [Stmt]. testdata has what each prints for
// each engine.
package statements
