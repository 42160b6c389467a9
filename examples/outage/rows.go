package main

import (
	"context"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/falldue/falldue/ops"
)

// row is a task's row in the database.
type row struct {
	columns string // all of them, as text
	fence   string // the column that a claim increases
	running bool
	due     time.Time // is in no column: the database computes it
}

// snapshot reads the deliveries, and all columns of their rows.
func (s *script) snapshot(ctx context.Context) (map[int64]row, error) {
	policies, err := s.ops.Policies(ctx)
	if err != nil {
		return nil, err
	}
	page, err := s.ops.Tasks(ctx, ops.Filter{Kind: s.webhook.Name()}, ops.ListOptions{Limit: maxTasks})
	if err != nil {
		return nil, err
	}
	stored, err := s.readRows(ctx)
	if err != nil {
		return nil, err
	}
	list := map[int64]row{}
	for _, t := range page.Tasks {
		r := stored[fmt.Sprint(t.ID)]
		// A task that was claimed between the two reads runs.
		r.running, r.due = t.ClaimedBy != "" || r.fence != fmt.Sprint(t.Fence), policies.Due(t)
		list[t.ID] = r
	}
	return list, nil
}

// readRows reads the rows of all tasks, by their IDs.
func (s *script) readRows(ctx context.Context) (map[string]row, error) {
	rows, err := s.db.QueryContext(ctx, "select * from "+prefix+"tasks")
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	list := map[string]row{}
	for rows.Next() {
		columns := map[string]any{}
		if err := sqlx.MapScan(rows, columns); err != nil {
			return nil, err
		}
		for name, value := range columns {
			if text, ok := value.([]byte); ok {
				columns[name] = string(text)
			}
		}
		list[fmt.Sprint(columns["id"])] = row{columns: fmt.Sprint(columns), fence: fmt.Sprint(columns["fence"])}
	}
	return list, rows.Err()
}
