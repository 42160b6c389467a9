// Package ops inspects and changes tasks, workers and policies, for the people who operate falldue. [Preview] and
// [Stampede] show the effect of a policy, and [Ahead] the future attempts of a task, without a database. An [Ops] reads
// the tables of falldue: it lists workers ([Ops.Workers]), explains why a task does not run ([Ops.Why]), follows events
// ([Ops.Watch]), and finds problems ([Ops.Diagnose]).
//
// Many methods read tasks by lanes. A lane is a group of tasks with the same delay, because they have the same queue,
// kind, state, priority, key, policy and number of attempts. A sequence is the tasks of a key that run one after
// another ([falldue.InOrder]).
package ops
