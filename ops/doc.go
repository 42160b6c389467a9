// Package ops answers the questions of a person who operates falldue: when tasks run
// again under a policy, and what load their retries make. It needs no database.
package ops
