package ops

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/falldue/falldue/internal/store"
)

// OwnPolicy describes a per-task policy ([falldue.EnqueueOptions].Policy) of tasks of a kind in a queue.
type OwnPolicy struct {
	// Key is the key in [falldue.TaskInfo.Policy], and Text is the text of the policy if it can be read.
	Key, Text string
	Err       error // why the policy cannot be read, or nil
	Queue     string
	Kind      string
	// Lanes is the number of lanes of these tasks, and Tasks is how many of the tasks wait or run.
	Lanes, Tasks int
	// More reports whether there are more tasks than the number in Tasks.
	More bool
}

const (
	// mostOfLane is the number up to which the tasks of a lane are counted.
	mostOfLane = 10_000
	// mostCounted is how many lanes are counted. Of others it is known that they have a task.
	mostCounted = 1000
)

// endOfTime is a moment after which no task falls due.
var endOfTime = time.Date(9200, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro()

// OwnPolicies lists the per-task policies of waiting and running tasks, by key, queue and kind. It counts up to 10,000
// tasks in each of up to 1,000 lanes.
func (o *Ops) OwnPolicies(ctx context.Context) ([]OwnPolicy, error) {
	queues, err := o.store.Queues(ctx)
	if err != nil {
		return nil, err
	}
	var found []store.Found
	var keys []string
	for _, queue := range queues {
		heads, err := o.store.NewLaneFinder().FindAll(ctx, queue)
		if err != nil {
			return nil, err
		}
		for _, h := range heads {
			if h.Policy != "" && h.Corrupt == nil {
				found, keys = append(found, store.Found{Queue: queue, Head: h}), append(keys, h.Policy)
			}
		}
	}
	known, err := o.Policies(ctx, keys...)
	if err != nil {
		return nil, err
	}
	type group struct{ key, queue, kind string }
	places := map[group]int{} // in list
	var list []OwnPolicy
	for i, h := range found {
		at := group{h.Policy, h.Queue, h.Kind}
		n, again := places[at]
		if !again {
			p := OwnPolicy{Key: h.Policy, Err: known.Unreadable[h.Policy], Queue: h.Queue, Kind: h.Kind}
			if policy, ok := known.own[h.Policy]; ok {
				p.Text = policy.String()
			}
			list, n = append(list, p), len(list)
			places[at] = n
		}
		p, tasks := &list[n], 1
		if i >= mostCounted {
			p.More = true
		} else if tasks, err = o.store.CountAhead(ctx, h.Queue, h.Lane, 0, endOfTime, mostOfLane+1); err != nil {
			return nil, err
		}
		p.Lanes++
		p.Tasks += min(tasks, mostOfLane)
		p.More = p.More || tasks > mostOfLane
	}
	list = slices.DeleteFunc(list, func(p OwnPolicy) bool { return p.Tasks == 0 }) // they have ended meanwhile
	slices.SortFunc(list, func(a, b OwnPolicy) int {
		return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Queue, b.Queue), cmp.Compare(a.Kind, b.Kind))
	})
	return list, nil
}
