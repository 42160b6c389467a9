package transactions

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/examples/transactions/orders"
	"github.com/falldue/falldue/pgxqueue"
)

// PlaceBySqlc stores an order and the task that sends its invoice, or neither. Package
// orders is what sqlc generates for pgx.
func PlaceBySqlc(ctx context.Context, pool *pgxpool.Pool, q *falldue.Queue, number int32) error {
	return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		if err := orders.New(tx).Insert(ctx, number); err != nil {
			return err
		}
		_, err := SendInvoice.EnqueueTx(ctx, q, pgxqueue.Tx(tx), InvoiceArgs{Order: int(number)})
		return err
	})
}
