// Command asynq writes the waiting tasks of asynq as lines for the program in enqueue.
package main

import (
	"encoding/json"
	"fmt"
	"log"
	"os"

	"github.com/hibiken/asynq"
)

func main() {
	redis, err := asynq.ParseRedisURI(os.Getenv("REDIS_URL"))
	if err != nil {
		log.Panic(err)
	}
	inspector := asynq.NewInspector(redis)
	queues, err := inspector.Queues()
	if err != nil {
		log.Panic(err)
	}
	for _, queue := range queues {
		export(queue, inspector.ListPendingTasks)
		export(queue, inspector.ListScheduledTasks)
		export(queue, inspector.ListRetryTasks)
	}
}

func export(queue string, list func(string, ...asynq.ListOption) ([]*asynq.TaskInfo, error)) {
	const size = 1000
	lines := json.NewEncoder(os.Stdout)
	for page := 1; ; page++ {
		tasks, err := list(queue, asynq.Page(page), asynq.PageSize(size))
		if err != nil {
			log.Panic(err)
		}
		for _, t := range tasks {
			line := map[string]any{
				"id": queue + "/" + t.ID, "queue": queue, "kind": t.Type, "metadata": t.Headers,
				"attempts": t.MaxRetry + 1 - t.Retried,
			}
			if len(t.Payload) > 0 {
				line["payload"] = json.RawMessage(t.Payload)
			}
			if t.State != asynq.TaskStatePending {
				line["at"] = t.NextProcessAt.Unix()
			}
			if err := lines.Encode(line); err != nil {
				panic(fmt.Errorf("task %s of queue %s: %w", t.ID, queue, err))
			}
		}
		if len(tasks) < size {
			return
		}
	}
}
