// Package tasks has the program of docs/moving/tasks-table.md before the move.
package tasks

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"
)

// InvoiceArgs are the arguments of a task.
type InvoiceArgs struct {
	Order int `json:"order"`
}

func work(ctx context.Context, db *sqlx.DB) error {
	for {
		var t struct {
			ID       int64
			Attempts int
			Payload  []byte
		}
		err := db.GetContext(ctx, &t, `
			update tasks set status = 'running', attempts = attempts + 1, updated_at = now()
			where id = (select id from tasks where status = 'pending' and run_at <= now()
				order by run_at limit 1 for update skip locked)
			returning id, attempts, payload`)
		switch {
		case errors.Is(err, sql.ErrNoRows):
			time.Sleep(time.Second)
			continue
		case err != nil:
			return err
		}
		var args InvoiceArgs
		if err = json.Unmarshal(t.Payload, &args); err == nil {
			err = send(ctx, args.Order)
		}
		if err == nil {
			_, err = db.ExecContext(ctx, `update tasks set status = 'done', updated_at = now() where id = $1`, t.ID)
		} else {
			_, err = db.ExecContext(ctx, `update tasks set last_error = $2, updated_at = now(),
				status = case when attempts < max_attempts then 'pending' else 'failed' end,
				run_at = now() + interval '1 minute' * attempts where id = $1`, t.ID, err.Error())
		}
		if err != nil {
			return err
		}
	}
}

func order(ctx context.Context, tx *sqlx.Tx, number int) error {
	_, err := tx.ExecContext(ctx, `insert into tasks (kind, payload) values ('invoice.send', $1)`, fmt.Sprintf(`{"order": %d}`, number))
	return err
}

func send(_ context.Context, order int) error {
	fmt.Println("send the invoice of order", order)
	return nil
}

var _ = []any{work, order}
