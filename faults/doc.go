// Package faults tests whether falldue keeps its promises when things go wrong
// (docs/fault-suite.md).
//
// Workers and enqueuers are processes of their own (worker.go, enqueuer.go). They run
// jobs that fail at random (job.go) and write a history (history.go). At the end a
// checker (checker.go) compares the histories with the database (table.go).
//
// TestHundredThousand runs them without faults. The program in the folder run injects
// faults from a seed: into the processes, their connections, the server, the nodes of a
// cluster, and the rows (run.go, fault.go, cluster.go, sql_fault.go).
//
// The package is a module of its own, so that falldue's go.mod does not list a network
// proxy and a library that replaces time.Now.
package faults
