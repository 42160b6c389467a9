// Package ops answers the questions of a person who operates falldue. [Preview] and
// [Stampede] show what a policy does, and [Ahead] what a task has ahead of it; they need
// no database. An [Ops] reads the tables: which workers there are
// ([Ops.Workers]), why a task does not run ([Ops.Why]), what happens to tasks
// ([Ops.Watch]), and what is wrong ([Ops.Diagnose]).
package ops
