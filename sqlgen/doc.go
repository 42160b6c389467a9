// Package sqlgen implements the formula language of delays. [Parse] parses a
// text into an expression tree, an [Expr]. [Compile] turns the tree into a
// [Formula], which has a value for every number of attempts. [Formula.Eval]
// computes that value in Go, and [Formula.SQL] renders the formula as SQL for an
// engine. Tests check that both give the same values on every engine.
//
// [Due] renders the due predicate for any table that has a count of attempts
// and a timestamp.
package sqlgen
