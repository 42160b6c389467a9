// Package faults finds out whether falldue keeps its promises when things go
// wrong (docs/guarantees.md).
//
// Workers and enqueuers are processes of their own (worker.go, enqueuer.go),
// which run jobs that fail at random (job.go) and write down what happens to
// them (history.go). When all is over a checker (checker.go) compares that with
// what is in the database (table.go).
//
// TestHundredThousand does so while nothing disturbs them. The program in the
// folder run does it while faults from a seed befall the processes, their
// connections, the server, the nodes of a cluster and the rows (run.go, fault.go, cluster.go,
// sql_fault.go).
package faults
