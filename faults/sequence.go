package faults

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

const (
	orderedName = "ordered"
	// One job in orderedEvery is part of a sequence, and each enqueuer has sequencesEach.
	orderedEvery  = 9
	sequencesEach = 3
)

// sequenceKey returns the key of the sequence that has the job with a number.
func sequenceKey(enqueuer string, number int) string {
	return fmt.Sprintf("%s/%d", enqueuer, number/orderedEvery%sequencesEach)
}

// keyOf returns the key of the job of an enqueuer with a number.
func keyOf(enqueuer string, number int) string { return fmt.Sprintf("%s-%d", enqueuer, number) }

// numberOf returns the number of a job among those of its enqueuer.
func numberOf(key string) int {
	n, err := strconv.Atoi(strings.TrimSuffix(key[strings.LastIndex(key, "-")+1:], replaceable))
	if err != nil {
		return 0
	}
	return n
}

// processOf returns the name of the enqueuer that made a key.
func processOf(key string) string { return key[:max(strings.LastIndex(key, "-"), 0)] }

// outOfOrder returns the keys of jobs that ran before one of their sequence had ended that
// was enqueued before them. That is certain only of those whose enqueue was acknowledged: the
// commit of another one may have come later.
func outOfOrder(lives map[string]*life) (keys []string) {
	sequences := map[string][]*life{}
	for _, l := range lives {
		if len(l.rows) == 1 && l.rows[0].Sequence != "" && len(l.started) > 0 {
			sequences[l.rows[0].Sequence] = append(sequences[l.rows[0].Sequence], l)
		}
	}
	for _, list := range sequences {
		slices.SortFunc(list, func(a, b *life) int { return cmp.Compare(numberOf(a.key), numberOf(b.key)) })
		var ended int64 // when the last run of one of those before ended
		for _, l := range list {
			if first := slices.MinFunc(l.started, func(a, b Event) int { return cmp.Compare(a.At, b.At) }); first.At < ended {
				keys = append(keys, l.key)
			}
			if l.acknowledged {
				ended = max(ended, l.lastRun())
			}
		}
	}
	return keys
}

// lastRun returns when the run of the last claim ended, or began if nobody knows when it ended,
// or 0 if no handler ran for that claim. A handler that had lost its lease may have begun later.
func (l *life) lastRun() int64 {
	fence := l.rows[0].Fence
	if end, ok := l.ended[fence]; ok && end.Outcome != OutcomeUnsure { // that is written after the commit
		return end.At
	}
	start, _ := l.start(fence)
	return start.At
}
