package faults

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/flow"
)

// callbackKey returns the key of the job with a number that runs after the n jobs of the same
// enqueuer before it.
func callbackKey(enqueuer string, number, n int) string {
	return fmt.Sprintf("%s-%d+%d", enqueuer, number, n)
}

// membersOf returns the keys of the jobs after which a job runs.
func membersOf(key string) (keys []string) {
	of, n, ok := strings.Cut(key, "+")
	dash := strings.LastIndex(of, "-")
	if !ok || dash < 0 {
		return nil
	}
	number, err := strconv.Atoi(of[dash+1:])
	count, other := strconv.Atoi(n)
	if cmp.Or(err, other) != nil {
		return nil
	}
	for i := number - count; i < number; i++ {
		keys = append(keys, fmt.Sprintf("%s-%d", of[:dash], i))
	}
	return keys
}

// asFlow enqueues jobs of which the last one runs when the others have ended, in any way.
func (e *enqueuer) asFlow(ctx context.Context, params []falldue.EnqueueParams, keys []string) error {
	last := len(params) - 1
	keys[last] = callbackKey(e.Name, e.made, last)
	params[last] = e.kinds.plain.Params(Job{Key: keys[last]}, nil)
	ids, err := flow.Batch(params[:last]...).Then(params[last], flow.RunAnyway()).Enqueue(ctx, e.queue)
	if err != nil {
		return err
	}
	e.write(Acknowledged, keys, ids)
	return nil
}

// tooEarly returns the keys of jobs that ran before one after which they were to run.
func tooEarly(lives map[string]*life) (keys []string) {
	for key, l := range lives {
		for _, member := range membersOf(key) {
			m := lives[member]
			if len(l.started) > 0 && m != nil && len(m.started) > 0 && l.started[0].At < m.started[len(m.started)-1].At {
				keys = append(keys, key)
				break
			}
		}
	}
	return keys
}
