package worker

import (
	"sync"
	"time"
)

// Life knows the current worker of a process, and how the last one ended. The zero value has had no worker.
type Life struct {
	mu    sync.Mutex
	now   *Worker // nil if there is none
	ended bool    // a worker has ended
	err   error   // of the last worker
}

// Begin notes a worker. It reports false if there is one already.
func (l *Life) Begin(w *Worker) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.now != nil {
		return false
	}
	l.now = w
	return true
}

// End notes that the worker has ended.
func (l *Life) End() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.now = nil
}

// Returned notes the error of a call that was to run a worker, or nil.
func (l *Life) Returned(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended, l.err = true, err
}

// Worker returns the worker, or nil.
func (l *Life) Worker() *Worker {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.now
}

// Health describes a process's worker and its database. Reading it costs no statement.
type Health struct {
	// Checking reports whether a worker checks policies and tables before it works. Running reports
	// whether it claims tasks, or waits for the last handlers, and Stopping whether it claims no more.
	Checking, Running, Stopping bool
	// Ended reports whether a worker has ended and no other one has begun, and Err is its error.
	Ended bool
	Err   error
	// Tried is when the last statement began, and Answered when the database last answered one,
	// even with an error. A worker sends a statement every 15 seconds at least.
	Tried, Answered time.Time
	// Handlers is how many handlers run, by queue.
	Handlers map[string]int
}

// statementTimes are the times of a process's statements.
type statementTimes interface {
	// LastStatements returns when the last statement began, and when the database last answered.
	LastStatements() (tried, answered time.Time)
}

// Health returns the health of the worker. s has the times of the process's statements.
func (l *Life) Health(s statementTimes) (h Health) {
	h.Tried, h.Answered = s.LastStatements()
	l.mu.Lock()
	defer l.mu.Unlock()
	if w := l.now; w != nil {
		h.Running, h.Stopping, h.Handlers = w.working.Load(), w.stop.Err() != nil, w.dispatchers.Running()
		h.Checking = !h.Running
		return h
	}
	h.Ended, h.Err = l.ended, l.err
	return h
}
