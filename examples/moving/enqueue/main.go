// Command enqueue enqueues jobs that come as lines of JSON from another queue.
package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"time"

	_ "github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/jmoiron/sqlx"
	_ "modernc.org/sqlite"

	"github.com/falldue/falldue"
)

// job is a line of the export.
type job struct {
	ID       string            `json:"id"`
	Queue    string            `json:"queue"`
	Kind     string            `json:"kind"`
	Payload  json.RawMessage   `json:"payload"`
	Metadata map[string]string `json:"metadata"`
	At       float64           `json:"at"`       // when the job runs next, in seconds since 1970; 0 means immediately
	Attempts int               `json:"attempts"` // how many attempts are left; 0 means the policy's limit
}

func main() {
	ctx := context.Background()
	db := sqlx.MustConnect(os.Getenv("DATABASE_DRIVER"), os.Getenv("DATABASE_URL"))
	q, err := falldue.New(db, falldue.Config{})
	if err != nil {
		log.Panic(err)
	}
	db.MustExec("create table if not exists moved_jobs (id varchar(64) primary key)")
	tx := db.MustBegin()
	defer func() { _ = tx.Rollback() }() // does nothing once it is committed

	var tasks []falldue.EnqueueParams
	for lines := json.NewDecoder(os.Stdin); ; {
		var j job
		if err := lines.Decode(&j); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			log.Panic(err)
		}
		// IDs may be long, or differ only in upper and lower case.
		id := fmt.Sprintf("%x", sha256.Sum256([]byte(j.ID)))
		var known int
		if err := tx.Get(&known, tx.Rebind("select count(*) from moved_jobs where id = ?"), id); err != nil {
			log.Panic(err)
		} else if known > 0 {
			continue
		}
		tx.MustExec(tx.Rebind("insert into moved_jobs (id) values (?)"), id)
		options := falldue.EnqueueOptions{Queue: j.Queue, MaxAttempts: j.Attempts, Metadata: j.Metadata}
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
