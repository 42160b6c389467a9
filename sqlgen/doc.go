// Package sqlgen is the language of delays: text is parsed into an expression
// ([Parse], [Expr]), made total ([Compile]), evaluated in Go ([Formula.Eval])
// and rendered for an engine ([Formula.SQL]). Both interpreters walk the same
// tree, and tests hold them to the same values on every engine.
//
// [Due] renders the due predicate for any table with a count of attempts and a
// timestamp.
package sqlgen
