// Command sidekiq writes the waiting jobs of Sidekiq or Faktory as lines for the
// program in enqueue.
package main

import (
	"context"
	"encoding/json"
	"log"
	"os"
	"slices"

	"github.com/redis/go-redis/v9"
)

type job struct {
	ID         string            `json:"jid"`
	Queue      string            `json:"queue"`
	Class      string            `json:"class"`
	Wrapped    string            `json:"wrapped"` // the class of an Active Job
	Type       string            `json:"jobtype"` // the class of a Faktory job
	Args       []json.RawMessage `json:"args"`
	Retry      any               `json:"retry"` // a number of retries, or true or false
	RetryFor   float64           `json:"retry_for"`
	RetryCount *int              `json:"retry_count"` // 0 after the first failure
	Failure    *struct {         // Faktory's
		Remaining int `json:"remaining"`
	} `json:"failure"`
}

// attempts returns how many attempts the job has left, or 0 if the policy decides.
func (j job) attempts() int {
	left := 26 // the default of 25 retries in Sidekiq and Faktory, and the first attempt
	switch retry := j.Retry.(type) {
	case float64:
		left = int(retry) + 1
	case bool:
		if !retry {
			left = 1
		}
	}
	switch {
	case j.RetryFor > 0:
		return 0
	case j.Failure != nil:
		left = j.Failure.Remaining
	case j.RetryCount != nil:
		left -= *j.RetryCount + 1
	}
	return max(left, 1)
}

func main() {
	ctx := context.Background()
	options, err := redis.ParseURL(os.Getenv("REDIS_URL"))
	if err != nil {
		log.Panic(err)
	}
	db := redis.NewClient(options)
	queues, err := db.SMembers(ctx, "queues").Result()
	if err != nil {
		log.Panic(err)
	}
	for _, queue := range queues {
		for _, key := range []string{"queue:" + queue, "q:" + queue} { // Sidekiq's, Faktory's
			jobs, err := db.LRange(ctx, key, 0, -1).Result()
			if err != nil {
				log.Panic(err)
			}
			for _, text := range slices.Backward(jobs) { // the oldest job is the last
				write(text, 0)
			}
		}
	}
	for _, key := range []string{"schedule", "retry", "scheduled", "retries"} { // Sidekiq's, then Faktory's
		jobs, err := db.ZRangeWithScores(ctx, key, 0, -1).Result()
		if err != nil {
			log.Panic(err)
		}
		for _, entry := range jobs {
			write(entry.Member.(string), entry.Score)
		}
	}
}

// write writes a job as a line. at is 0 for a job that waits in a queue.
func write(text string, at float64) {
	var j job
	if err := json.Unmarshal([]byte(text), &j); err != nil {
		log.Panicf("%v in %s", err, text)
	}
	line := map[string]any{"id": j.ID, "queue": j.Queue, "at": at, "attempts": j.attempts(), "kind": j.Class + j.Type, "payload": j.Args}
	if j.Wrapped != "" {
		var data struct {
			Arguments []json.RawMessage `json:"arguments"`
		}
		if err := json.Unmarshal(j.Args[0], &data); err != nil {
			log.Panicf("%v in %s", err, text)
		}
		line["kind"], line["payload"] = j.Wrapped, data.Arguments
	}
	if err := json.NewEncoder(os.Stdout).Encode(line); err != nil {
		log.Panic(err)
	}
}
