// Command enqueue enqueues jobs that come as lines of JSON from another queue.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/jmoiron/sqlx"

	"github.com/falldue/falldue"
)

// job is a line of the export.
type job struct {
	ID       string            `json:"id"`
	Queue    string            `json:"queue"`
	Kind     string            `json:"kind"`
	Payload  json.RawMessage   `json:"payload"`
	Meta     map[string]string `json:"meta"`
	At       float64           `json:"at"`       // when it runs next, in seconds since 1970; 0 is at once
	Attempts int               `json:"attempts"` // how many it has left; 0 is as the policy says
}

func main() {
	ctx := context.Background()
	db := sqlx.MustConnect("pgx", os.Getenv("DATABASE_URL"))
	q, err := falldue.New(db, falldue.Config{})
	if err != nil {
		log.Panic(err)
	}
	tx := db.MustBegin()
	defer func() { _ = tx.Rollback() }() // does nothing once it is committed
	tx.MustExec("create table if not exists moved_jobs (id text primary key)")

	var tasks []falldue.EnqueueParams
	for lines := json.NewDecoder(os.Stdin); ; {
		var j job
		if err := lines.Decode(&j); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			log.Panic(err)
		}
		result := tx.MustExec("insert into moved_jobs (id) values ($1) on conflict do nothing", j.ID)
		if isNew, _ := result.RowsAffected(); isNew == 0 {
			continue
		}
		options := &falldue.EnqueueOptions{Queue: j.Queue, MaxAttempts: j.Attempts, Meta: j.Meta}
		if j.At > 0 {
			options.RunAt = time.UnixMicro(int64(j.At * 1e6))
		}
		kind := falldue.NewKind[json.RawMessage](j.Kind, falldue.KindConfig{})
		tasks = append(tasks, kind.Params(j.Payload, options))
	}
	if _, err := q.EnqueueManyTx(ctx, tx, tasks...); err != nil {
		log.Panic(err)
	}
	if err := tx.Commit(); err != nil {
		log.Panic(err)
	}
	fmt.Println("moved", len(tasks))
}
