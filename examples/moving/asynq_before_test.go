package moving_test

import (
	"context"
	"encoding/json"

	"github.com/hibiken/asynq"
)

// The program of docs/moving/asynq.md before the move.

const typeInvoice = "invoice:send"

type InvoiceArgs struct {
	Order int `json:"order"`
}

func handleInvoice(ctx context.Context, task *asynq.Task) error {
	var args InvoiceArgs
	if err := json.Unmarshal(task.Payload(), &args); err != nil {
		return err
	}
	return send(ctx, args.Order)
}

func work(redis asynq.RedisConnOpt) error {
	server := asynq.NewServer(redis, asynq.Config{Concurrency: 10})
	mux := asynq.NewServeMux()
	mux.HandleFunc(typeInvoice, handleInvoice)
	return server.Run(mux)
}

func order(ctx context.Context, client *asynq.Client, number int) error {
	payload, err := json.Marshal(InvoiceArgs{Order: number})
	if err != nil {
		return err
	}
	_, err = client.EnqueueContext(ctx, asynq.NewTask(typeInvoice, payload))
	return err
}

// A test cannot end work, which waits for a signal to the process.
var _ = work
