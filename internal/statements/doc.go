// Package statements makes the SQL of the queue: one function for each
// statement, which takes a server and returns a [Stmt]. The golden files in
// testdata show what each function returns for each engine.
//
// A statement is written as a template, which is SQL with two additions:
//
//	:name        the parameter of that name; the "::" of a cast stays as it is
//	{name}       the fragment of that name
//	{name a, b}  the fragment of that name, made of arguments
//
// Fragments and arguments may contain parameters and fragments themselves. The
// fragments that all statements know are in [builder.common]. The fragments of one
// statement are in its function. A line that begins with a tab continues the line
// before it. A name without a fragment is a mistake of the programmer, and making
// the statement panics.
//
// Each row that enters or leaves the database has a Go type and a table of
// [Columns], in columns.go.
package statements
