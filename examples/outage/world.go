package main

import (
	"net/http"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// A request has one of two paths. Its headers have the ID of the task, by which a receiver can detect a second request,
// and the worker.
const (
	pathWebhook  = "/webhook"
	pathMail     = "/mail"
	headerID     = "Idempotency-Key"
	headerWorker = "X-Worker"
)

// world answers the requests: it is the partner, and a mail server that is always up.
type world struct {
	latency, width time.Duration // how long an answer takes, and how long a column of the chart lasts
	up             atomic.Bool   // the partner

	mu       sync.Mutex
	began    time.Time
	requests []int              // to the partner, by column
	received map[int64]received // by the ID of the task
}

// received describes the requests of a task.
type received struct {
	worker             string // that has sent the last request
	running, succeeded bool
	refused            int
}

func newWorld(second time.Duration) *world {
	return &world{latency: second / 5, width: second / 2, began: time.Now(), received: map[int64]received{}}
}

func (w *world) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	id, err := strconv.ParseInt(r.Header.Get(headerID), 10, 64)
	if err != nil {
		rw.WriteHeader(http.StatusBadRequest)
		return
	}
	w.change(id, func(d *received) {
		d.worker, d.running = r.Header.Get(headerWorker), true
		if column := int(time.Since(w.began) / w.width); r.URL.Path == pathWebhook {
			w.requests = append(w.requests, make([]int, max(column+1-len(w.requests), 0))...)
			w.requests[column]++
		}
	})
	select {
	case <-time.After(w.latency):
	case <-r.Context().Done(): // the worker has died
	}
	w.change(id, func(d *received) {
		d.running = false
		switch {
		case r.Context().Err() != nil:
		case w.up.Load() || r.URL.Path == pathMail:
			d.succeeded = true
			rw.WriteHeader(http.StatusNoContent)
		default:
			d.refused++
			rw.WriteHeader(http.StatusServiceUnavailable)
		}
	})
}

func (w *world) change(id int64, f func(*received)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	d := w.received[id]
	f(&d)
	w.received[id] = d
}

// count returns how many tasks match.
func (w *world) count(match func(id int64, d received) bool) (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for id, d := range w.received {
		if match(id, d) {
			n++
		}
	}
	return n
}

// begin begins the chart.
func (w *world) begin() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.began = time.Now()
}

// column returns the current column of the chart.
func (w *world) column() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return int(time.Since(w.began) / w.width)
}

// columns returns the requests in each column of the chart, until now.
func (w *world) columns() []int {
	now := w.column()
	w.mu.Lock()
	defer w.mu.Unlock()
	return append(slices.Clone(w.requests), make([]int, max(now+1-len(w.requests), 0))...)
}
