// Package sqlgen writes SQL, and is the only package that does, besides dialect
// and migrations.
//
// One half of it is the language of delays: text is parsed into an expression
// ([Parse], [Expr]), made total ([Compile]), evaluated in Go ([Formula.Eval])
// and rendered for an engine ([Formula.SQL]). Both interpreters walk the same
// tree, and tests hold them to the same values on every engine. [Due] renders
// the due predicate for any table with a count of attempts and a timestamp.
//
// The other half is the statements of the queue: one function each, which takes
// a server and returns a [Stmt]. testdata has what each prints for each engine.
package sqlgen
