package upkeep

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// Notifier notifies the listening workers of other processes of tasks that this process has
// stored. The calls that stored the tasks neither wait for a notification nor fail with it, and
// commits do not wait for each other. After a lost notification, a worker finds the tasks by polling.
type Notifier struct {
	table notifyTable

	mu      sync.Mutex
	waiting map[string]struct{} // the queues of the next notification; "" stands for all
	running bool                // a notification is sent or will be
	next    time.Time           // when the next notification may be sent
}

const (
	// notifyPause is the shortest time between two notifications of a process.
	notifyPause = 10 * time.Millisecond
	// notifyTimeout is the longest time for a notification.
	notifyTimeout = 5 * time.Second
	// maxNotified is the greatest number of queues that a notification names.
	maxNotified = 70 // names have up to 100 bytes, and PostgreSQL's notifications up to 7,999
)

// notifyTable sends a notification: the names of queues, separated by spaces, or "" for all queues.
type notifyTable interface {
	Notify(ctx context.Context, text string) error
}

// NewNotifier returns a notifier of the workers of a table.
func NewNotifier(table notifyTable) *Notifier { return &Notifier{table: table} }

// Add notifies workers of a queue, or of all queues if the name is empty: immediately, or soon if
// a notification has just been sent.
func (n *Notifier) Add(queue string) {
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

// flush sends the next notification.
func (n *Notifier) flush() {
	n.mu.Lock()
	queues := slices.Sorted(maps.Keys(n.waiting))
	clear(n.waiting)
	n.mu.Unlock()
	text := strings.Join(queues, " ")
	if queues[0] == "" || len(queues) > maxNotified {
		text = ""
	}
	ctx, cancel := context.WithTimeout(context.Background(), notifyTimeout)
	defer cancel()
	_ = n.table.Notify(ctx, text) // after a failure, workers find the stored tasks by polling
	n.mu.Lock()
	defer n.mu.Unlock()
	n.next = time.Now().Add(notifyPause)
	if n.running = len(n.waiting) > 0; n.running {
		time.AfterFunc(notifyPause, n.flush)
	}
}
