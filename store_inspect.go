package falldue

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/internal/statements"
)

func (s *store) list(ctx context.Context, p statements.ListParams, values statements.Values) (list []TaskInfo, err error) {
	stmt := s.stmt(fmt.Sprintf("list %+v", p), 0, func(int) statements.Stmt { return statements.List(s.server, s.tables, p) })
	err = s.retry(ctx, func() error {
		list = list[:0]
		rows, err := pool{s}.rows(ctx, stmt.SQL, stmt.Bind(values, nil))
		if err != nil {
			return err
		}
		defer func() { _ = rows.Close() }()
		for rows.Next() {
			t, err := scanTask(rows)
			if err != nil {
				return err
			}
			list = append(list, t)
		}
		return rows.Err()
	})
	return list, err
}

func scanTask(rows *sql.Rows) (TaskInfo, error) {
	var t TaskInfo
	var updated, created, now int64
	var first, attempted int64
	var lastError sql.NullString
	var payload, result []byte
	err := rows.Scan(&t.ID, &t.Queue, &t.State, &t.Priority, &t.Kind, &t.Policy, &t.Attempts, &t.MaxAttempts, &t.Fence,
		&updated, &created, &first, &attempted, &now, &t.ClaimedBy, &lastError, &payload, &result)
	t.UpdatedAt, t.CreatedAt, t.Now = moment(updated), moment(created), moment(now)
	if t.Attempts > 0 {
		t.FirstAttemptedAt = moment(first)
	}
	if t.Fence > 0 {
		t.AttemptedAt = moment(attempted)
	}
	t.LastError, t.Payload, t.Result = lastError.String, payload, result
	return t, err
}

func moment(us int64) time.Time { return time.UnixMicro(us).UTC() }

// changeState runs a statement that takes one task to another state.
func (s *store) changeState(ctx context.Context, name string, make func(dialect.Server, dialect.Tables) statements.Stmt, id int64) error {
	stmt := s.stmt(name, 0, func(int) statements.Stmt { return make(s.server, s.tables) })
	return s.write(ctx, func() error {
		res, err := pool{s}.exec(ctx, stmt.SQL, stmt.Bind(statements.Values{"id": id}, nil))
		if err != nil {
			return err
		}
		n, err := res.RowsAffected()
		if err == nil && n == 0 {
			err = fmt.Errorf("%w that %s can change: %d", ErrNotFound, name, id)
		}
		return err
	})
}
