// Package ops answers the questions of a person who operates falldue. [Preview] and
// [Stampede] show what a policy does, and [Ahead] what a task has ahead of it; they need
// no database. An [Inspector] reads the tables: which workers there are
// ([Inspector.Workers]), why a task does not run ([Inspector.Why]), what happens to tasks
// ([Inspector.Watch]), and what is wrong ([Inspector.Diagnose]).
package ops
