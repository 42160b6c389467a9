package falldue

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// notices notifies the workers of other processes that listen of tasks that this process
// has stored. It does so beside the calls that stored them: a call neither waits for a
// notice nor fails with it, and commits do not wait for each other because of notices. A
// notice that is lost costs the tasks the time until a worker looks for them itself.
type notices struct {
	send func(ctx context.Context, notice string) error

	mu      sync.Mutex
	waiting map[string]struct{} // the queues of the next notice; "" stands for all
	running bool                // a notice is sent or will be
	next    time.Time           // when the next notice may be sent
}

const (
	// noticePause is the shortest time between two notices of a process.
	noticePause = 10 * time.Millisecond
	// noticeTimeout is the longest time for a notice.
	noticeTimeout = 5 * time.Second
	// maxNoticed is the greatest number of queues that a notice names.
	maxNoticed = 70 // names have up to 100 bytes, and PostgreSQL's notices up to 7,999
)

// Add sends a notice for a queue, or for all queues if the name is empty: at once, or
// soon if one has just been sent.
func (n *notices) Add(queue string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.waiting == nil {
		n.waiting = map[string]struct{}{}
	}
	n.waiting[queue] = struct{}{}
	if !n.running {
		n.running = true
		time.AfterFunc(time.Until(n.next), n.flush)
	}
}

// flush sends the next notice.
func (n *notices) flush() {
	n.mu.Lock()
	queues := slices.Sorted(maps.Keys(n.waiting))
	clear(n.waiting)
	n.mu.Unlock()
	notice := strings.Join(queues, " ")
	if queues[0] == "" || len(queues) > maxNoticed {
		notice = ""
	}
	ctx, cancel := context.WithTimeout(context.Background(), noticeTimeout)
	defer cancel()
	_ = n.send(ctx, notice) // the tasks are stored
	n.mu.Lock()
	defer n.mu.Unlock()
	n.next = time.Now().Add(noticePause)
	if n.running = len(n.waiting) > 0; n.running {
		time.AfterFunc(noticePause, n.flush)
	}
}
