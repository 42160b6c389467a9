package main

import (
	"syscall"
	"time"
)

// sleepUntil sleeps until a time. time.Sleep may take a millisecond longer than it should in a process that does
// nothing else: the scheduler waits in whole milliseconds.
func sleepUntil(t time.Time) {
	for wait := time.Until(t); wait > 0; wait = time.Until(t) {
		rest := syscall.NsecToTimespec(int64(wait))
		_ = syscall.Nanosleep(&rest, nil) // a signal ends it early
	}
}
