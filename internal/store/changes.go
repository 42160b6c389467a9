package store

import (
	"context"
	"slices"
	"time"

	"github.com/falldue/falldue/internal/statements"
)

type (
	// Change is a request to all workers, such as a pause.
	Change = statements.Change
	// StoredChange is a change as it is stored.
	StoredChange = statements.StoredChange
)

// AllChanges, passed to [Store.Changes], stands for the time since the first change.
const AllChanges = 50 * 365 * 24 * time.Hour

// PutChange stores a change.
func (s *Store) PutChange(ctx context.Context, c Change) error {
	_, err := once(ctx, s, func(x runner) (struct{}, error) { return struct{}{}, s.putChange(ctx, x, c) })
	return err
}

func (s *Store) putChange(ctx context.Context, x runner, c Change) error {
	values := statements.Values{}
	statements.ChangeColumns.Set(values, &c)
	_, err := x.exec(ctx, s.fixed("put change", statements.PutChange), values, nil)
	return err
}

// Changes returns the changes that were made within back before now, oldest first.
func (s *Store) Changes(ctx context.Context, back time.Duration) (list []StoredChange, err error) {
	err = s.read(ctx, s.fixed("read changes", statements.ReadChanges), statements.Values{"back": back.Microseconds()}, func() { list = list[:0] }, func(r row) error {
		var c StoredChange
		err := statements.StoredChangeColumns.Scan(r, &c)
		list = append(list, c)
		return err
	})
	return list, err
}

// DropCancels deletes the cancels that are older than age.
func (s *Store) DropCancels(ctx context.Context, age time.Duration) error {
	_, err := once(ctx, s, func(x runner) (struct{}, error) {
		_, err := x.exec(ctx, s.fixed("drop cancels", statements.DropCancels), statements.Values{"age": age.Microseconds()}, nil)
		return struct{}{}, err
	})
	return err
}

// maxHistory is the greatest number of replaced changes that are kept.
const maxHistory = 10_000

// DropOldChanges deletes changes that newer ones of their topics have replaced, if they are
// older than age or too many. It also deletes old ends of pauses and overrides when no other change of
// their topics is left.
func (s *Store) DropOldChanges(ctx context.Context, age time.Duration) error {
	list, err := s.Changes(ctx, AllChanges)
	if err != nil {
		return err
	}
	for ids := range slices.Chunk(outdated(list, age, maxHistory), MaxBatch) {
		rows := statements.DroppedChangeColumns.Rows(len(ids), func(i int) *int64 { return &ids[i] })
		_, err := once(ctx, s, func(x runner) (struct{}, error) {
			_, err := x.exec(ctx, s.batch("drop changes", len(ids), statements.DropChanges), nil, rows)
			return struct{}{}, err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// outdated returns the ids of changes that are no longer needed. The newest change of each topic
// stays, unless it is old, ends a pause or an override, and is the topic's only change.
func outdated(list []StoredChange, age time.Duration, most int) (ids []int64) {
	left := map[string]int{}
	for _, c := range list {
		left[c.Topic()]++
	}
	newest, history := map[string]bool{}, 0
	for _, c := range slices.Backward(list) {
		topic, ends := c.Topic(), c.What == statements.ChangeResume || c.What == statements.ChangeClearPolicy
		old := Duration(c.Now-c.Created) > age
		switch {
		case topic == "":
		case newest[topic]:
			if history++; old || history > most {
				ids = append(ids, c.ID)
			}
		default:
			if newest[topic] = true; old && ends && left[topic] == 1 {
				ids = append(ids, c.ID)
			}
		}
	}
	slices.Reverse(ids) // locks are taken in this order
	return ids
}

// TaskSubject begins the subject of a change of a task. The task's id follows.
const TaskSubject = "task:"
