package transactions

import (
	"context"

	"github.com/uptrace/bun"

	"github.com/falldue/falldue"
)

// BunOrder is a row of the table orders.
type BunOrder struct {
	bun.BaseModel `bun:"table:orders"`

	Number int `bun:",pk"`
}

// PlaceByBun stores an order and the task that sends its invoice, or neither.
func PlaceByBun(ctx context.Context, db *bun.DB, q *falldue.Queue, number int) error {
	return db.RunInTx(ctx, nil, func(ctx context.Context, tx bun.Tx) error {
		if _, err := tx.NewInsert().Model(&BunOrder{Number: number}).Exec(ctx); err != nil {
			return err
		}
		_, err := SendInvoice.EnqueueTx(ctx, q, tx.Tx, InvoiceArgs{Order: number})
		return err
	})
}
