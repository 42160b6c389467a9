package store

import (
	"context"
	"math"
	"slices"
	"strings"

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

// CountSince counts the tasks of each lane whose anchors are at least the lane's Wait old, up to its Most.
func (s *Store) CountSince(ctx context.Context, lanes []LaneSince) ([]int, error) {
	counts := make([]int, len(lanes))
	err := united(ctx, s, "count since", statements.LaneSinceColumns, lanes, nil, statements.CountSince, func(i int) { counts[i] = 0 }, func(i int, r row) error {
		n, err := r.int(0)
		counts[i] = int(n)
		return err
	})
	return counts, err
}

// LaneSince is a lane whose tasks are counted.
type LaneSince = statements.LaneSince
