// Package river has the program of docs/moving/river.md before the move.
//
//nolint:revive // the page explains what it shows
package river

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
)

type InvoiceArgs struct {
	Order int `json:"order"`
}

func (InvoiceArgs) Kind() string { return "invoice.send" }

type InvoiceWorker struct {
	river.WorkerDefaults[InvoiceArgs]
}

func (InvoiceWorker) Work(ctx context.Context, job *river.Job[InvoiceArgs]) error {
	return send(ctx, job.Args.Order)
}

func work(ctx context.Context, pool *pgxpool.Pool) error {
	workers := river.NewWorkers()
	river.AddWorker(workers, InvoiceWorker{})
	client, err := river.NewClient(riverpgxv5.New(pool), &river.Config{
		Queues:  map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 10}},
		Workers: workers,
	})
	if err != nil {
		return err
	}
	if err := client.Start(ctx); err != nil {
		return err
	}
	<-client.Stopped()
	return nil
}

func order(ctx context.Context, client *river.Client[pgx.Tx], tx pgx.Tx, number int) error {
	_, err := client.InsertTx(ctx, tx, InvoiceArgs{Order: number}, nil)
	return err
}

func send(_ context.Context, order int) error {
	fmt.Println("send the invoice of order", order)
	return nil
}

var _ = []any{work, order}
