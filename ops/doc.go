// Package ops answers the questions of a person who operates falldue. [Preview] and
// [Stampede] show what a policy does, and [Ahead] what a task has ahead of it; they need
// no database. An [Inspector] reads the tables.
package ops
