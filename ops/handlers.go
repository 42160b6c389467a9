package ops

import (
	"slices"
	"time"
)

// QueueHandlers describes how many handlers of a queue run on live workers.
type QueueHandlers struct {
	Queue string
	// Running is how many handlers ran at the last heartbeats, and Concurrency is how many can run concurrently. Workers
	// has the same numbers for each worker.
	Running, Concurrency int
	Workers              []WorkerHandlers
}

// WorkerHandlers describes how many handlers of a queue run on a worker.
type WorkerHandlers struct {
	Worker               string // the ID of the worker
	Running, Concurrency int
	// Age is the age of these numbers.
	Age time.Duration
}

// Handlers returns how many handlers of a queue run on live workers. workers is a list from [Ops.Workers]. Only workers
// that handle the kind in that queue count. kind "" means all live workers of the queue. Workers that are shutting down
// are left out.
func Handlers(workers []Worker, queue, kind string) QueueHandlers {
	h := QueueHandlers{Queue: queue}
	for _, w := range workers {
		q, works := w.Queue(queue)
		if !works || !w.Live() || w.Stopping || kind != "" && !w.Handles(queue, kind) {
			continue
		}
		h.Running, h.Concurrency = h.Running+q.Running, h.Concurrency+q.Concurrency
		h.Workers = append(h.Workers, WorkerHandlers{w.ID, q.Running, q.Concurrency, w.Now.Sub(w.Seen)})
	}
	return h
}

// Busy reports whether there are workers, but no worker had a free handler.
func (h QueueHandlers) Busy() bool {
	return len(h.Workers) > 0 && !slices.ContainsFunc(h.Workers, func(w WorkerHandlers) bool { return w.Running < w.Concurrency })
}

// Age returns the age of the oldest number, that is, the time since the oldest heartbeat of these workers.
func (h QueueHandlers) Age() (oldest time.Duration) {
	for _, w := range h.Workers {
		oldest = max(oldest, w.Age)
	}
	return oldest
}

// BusyQueues lists, by name, the queues without a free handler on any live worker.
func BusyQueues(workers []Worker) (list []QueueHandlers) {
	var queues []string
	for _, w := range workers {
		queues = append(queues, w.QueueNames()...)
	}
	slices.Sort(queues)
	for _, queue := range slices.Compact(queues) {
		if h := Handlers(workers, queue, ""); h.Busy() {
			list = append(list, h)
		}
	}
	return list
}

// Capacity returns how many handlers of live workers can run tasks of a kind concurrently. kind "" means tasks of any
// kind. A stopping worker counts as 0. Limits may allow fewer tasks.
func Capacity(workers []Worker, kind string) (n int) {
	for _, w := range workers {
		if _, handles := w.Kinds[kind]; w.Live() && !w.Stopping && (kind == "" || handles) {
			n += w.Concurrency()
		}
	}
	return n
}
