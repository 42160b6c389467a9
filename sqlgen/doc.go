// Package sqlgen implements the formula language of delays and jitters, in which n is the number of failed attempts.
// [Parse] parses a text into an expression tree, an [Expr]. [Compile] turns the tree into a [Formula], which has a
// value for every n. [Formula.Eval] computes that value in Go, and [Formula.SQL] renders the formula as SQL for an
// engine. Tests check that Eval and SQL give the same values on every engine.
//
// [Due] renders the SQL condition that selects due rows, for any table with a
// column that counts failed attempts and a timestamp column.
package sqlgen
