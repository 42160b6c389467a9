package transactions

import (
	"context"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/examples/transactions/ent"
)

// PlaceByEnt stores an order and the task that sends its invoice, or neither.
func PlaceByEnt(ctx context.Context, client *ent.Client, q *falldue.Queue, number int) error {
	tx, err := client.Tx(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // does nothing once it is committed
	if err := tx.Order.Create().SetID(number).Exec(ctx); err != nil {
		return err
	}
	if _, err := SendInvoice.EnqueueTx(ctx, q, tx, InvoiceArgs{Order: number}); err != nil {
		return err
	}
	return tx.Commit()
}
