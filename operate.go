package falldue

import (
	"context"
	"time"

	"github.com/falldue/falldue/internal/store"
)

// What package ops needs of a queue, besides its store.

// Info returns what a worker of the queue would say of itself.
func (s internals) Info() store.WorkerInfo {
	handlers, _ := s.q.handlers()
	return s.q.workerConfig(handlers).Info
}

// TaskInfos returns rows as a []TaskInfo.
func (s internals) TaskInfos(rows []store.Task) any {
	list := make([]TaskInfo, len(rows))
	for i, t := range rows {
		list[i] = taskInfo(t, s.q.cfg.Codec)
	}
	return list
}

// Change stores a change of a Subject.
func (s internals) Change(ctx context.Context, subject any, until time.Time, c store.Change) error {
	return s.q.change(ctx, subject.(Subject), until, c)
}

// Acted tells workers of an action.
func (s internals) Acted(ctx context.Context, a store.Action, acted store.Acted) {
	s.q.acted(ctx, a, acted)
}
