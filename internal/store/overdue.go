package store

import (
	"context"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/falldue/falldue/internal/statements"
)

// Queues lists the queues that have tasks, in any state. It jumps from queue to queue
// in the index.
func (s *Store) Queues(ctx context.Context) ([]string, error) { return s.QueuesWith(ctx, "") }

// FirstQueues lists up to most of the queues that have tasks, the first by name.
func (s *Store) FirstQueues(ctx context.Context, most int) ([]string, error) {
	return s.queues(ctx, "", most)
}

// queuesPage is how many queues a statement lists.
const queuesPage = 500

// QueuesWith lists the queues that have tasks, in any state, and whose names are longer than prefix and begin with it.
func (s *Store) QueuesWith(ctx context.Context, prefix string) ([]string, error) {
	return s.queues(ctx, prefix, math.MaxInt)
}

func (s *Store) queues(ctx context.Context, prefix string, limit int) (list []string, err error) {
	stmt, most := s.fixed("queues", statements.Queues), min(queuesPage, limit)
	if s.server.Caps.LooseScan {
		most = 1
	}
	for last := prefix; ; {
		var page []string
		err := s.read(ctx, stmt, statements.Values{"queue": last, "limit": most}, func() { page = nil }, func(r row) error {
			page = append(page, r.text(0))
			return nil
		})
		slices.Sort(page)
		for _, queue := range page {
			if !strings.HasPrefix(queue, prefix) || len(list) == limit {
				return list, err
			}
			list = append(list, queue)
		}
		if err != nil || len(page) < most || page[len(page)-1] == last {
			return list, err
		}
		last = page[len(page)-1]
	}
}

// CountSince counts the tasks of a lane whose anchors are at least wait old, up to most.
func (s *Store) CountSince(ctx context.Context, queue string, at Lane, wait time.Duration, most int) (n int, err error) {
	values := statements.Values{"queue": queue, "wait": wait.Microseconds(), "limit": most}
	statements.SetLane(values, at)
	err = s.read(ctx, s.fixed("count since", statements.CountSince), values, func() { n = 0 }, func(r row) error {
		count, err := r.int(0)
		n = int(count)
		return err
	})
	return n, err
}
