package moving_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/hibiken/asynq"
)

// sent has the orders whose invoices were to be sent.
var sent = make(chan int, 10)

// send is called by the page's handler. It fails for most orders.
func send(_ context.Context, order int) error {
	sent <- order
	if order == 93 {
		return nil
	}
	return errors.New("no mail server")
}

// TestTasksOfAsynqMove: real asynq has tasks in all states but active. Those that wait
// move, in their order, and the others do not.
func TestTasksOfAsynqMove(t *testing.T) {
	server := miniredis.RunT(t)
	redis := asynq.RedisClientOpt{Addr: server.Addr()}
	client := asynq.NewClient(redis)
	defer func() { _ = client.Close() }()
	enqueue := func(task *asynq.Task, options ...asynq.Option) {
		t.Helper()
		if _, err := client.EnqueueContext(t.Context(), task, options...); err != nil {
			t.Fatal(err)
		}
	}
	invoice := func(payload string) *asynq.Task { return asynq.NewTask(typeInvoice, []byte(payload)) }

	// One is to be retried, one is archived, one is completed.
	enqueue(invoice(`{"order": 3}`), asynq.TaskID("retried"))
	enqueue(invoice(`{"order": 92}`), asynq.MaxRetry(0))
	enqueue(invoice(`{"order": 93}`), asynq.Retention(time.Hour))
	workers := asynq.NewServer(redis, asynq.Config{
		LogLevel:       asynq.FatalLevel,
		RetryDelayFunc: func(int, error, *asynq.Task) time.Duration { return time.Hour },
	})
	mux := asynq.NewServeMux()
	mux.HandleFunc(typeInvoice, handleInvoice)
	if err := workers.Start(mux); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		<-sent
	}
	workers.Shutdown() // waits until they are settled
	inspector := asynq.NewInspector(redis)
	defer func() { _ = inspector.Close() }()
	retried, err := inspector.GetTaskInfo("default", "retried")
	if err != nil || retried.State != asynq.TaskStateRetry {
		t.Fatalf("got %+v (error %v), want a task that is to be retried", retried, err)
	}

	// The others never ran. Two queues have a task with the same id.
	if err := order(t.Context(), client, 1); err != nil {
		t.Fatal(err)
	}
	enqueue(invoice(`{"order": 2}`), asynq.TaskID("same"), asynq.MaxRetry(4))
	enqueue(asynq.NewTaskWithHeaders("sweep", nil, map[string]string{"trace": "t1"}), asynq.TaskID("same"), asynq.Queue("low"))
	later := time.Date(2037, time.January, 2, 3, 4, 5, 0, time.UTC)
	enqueue(invoice(`{"order": 4}`), asynq.ProcessAt(later))
	enqueue(invoice(`{"order": 94}`), asynq.Group("invoices"))

	want := []task{
		{Queue: "default", Kind: typeInvoice, Payload: `{"order":1}`, MaxAttempts: 26},
		{Queue: "default", Kind: typeInvoice, Payload: `{"order":2}`, MaxAttempts: 5},
		{Queue: "default", Kind: typeInvoice, Payload: `{"order":4}`, MaxAttempts: 26, At: later},
		{Queue: "default", Kind: typeInvoice, Payload: `{"order":3}`, MaxAttempts: 25, At: retried.NextProcessAt.UTC()},
		{Queue: "low", Kind: "sweep", Payload: `null`, MaxAttempts: 26, Metadata: map[string]string{"trace": "t1"}},
	}
	checkMove(t, "asynq", "redis://"+server.Addr(), want)
}
