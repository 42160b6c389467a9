package main

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jmoiron/sqlx"
)

// raw shows what the database itself can do: plain statements, and loops that
// claim 500 tasks by a stored time, handle them and settle them. Each claim has a
// name, and the settle checks it. It does nothing else that a queue does.
type raw struct {
	rawStatements
	pool  *sqlx.DB
	loops int
}

// rawStatements is the part of raw that differs between engines.
type rawStatements interface {
	insert(ctx context.Context, n int) error
	copyIn(ctx context.Context, n int) error
	insertOne(ctx context.Context) error
	insertWaiting(ctx context.Context, n int) error
	// listen returns a channel that receives when there are new tasks, or nil.
	listen(ctx context.Context) (<-chan struct{}, error)
	// claim takes up to rawBatch tasks.
	claim(ctx context.Context, name int64) ([]rawTask, error)
	// done and failed settle claimed tasks and return the number of rows changed.
	done(ctx context.Context, name int64, tasks []rawTask) (int64, error)
	failed(ctx context.Context, name int64, tasks []rawTask) (int64, error)
}

type rawTask struct {
	ID       int64
	Attempts int64
	Payload  []byte
}

const (
	rawLoops = 2
	rawBatch = 500
)

// claimNumber is the name of the latest claim; each claim has its own.
var claimNumber atomic.Int64

func (r *raw) close() { _ = r.pool.Close() }

func (r *raw) work(ctx context.Context, handle func() error) (func() error, error) {
	return startWorker(ctx, func(ctx context.Context) error {
		notified, err := r.listen(ctx)
		if err != nil {
			return err
		}
		return loops(ctx, r.loops, func(ctx context.Context) error {
			for {
				n, err := r.runBatch(handle)
				if err != nil {
					return err
				}
				if n > 0 && ctx.Err() == nil {
					continue
				}
				select {
				case <-ctx.Done():
					return nil
				case <-notified:
				case <-time.After(time.Second):
				}
			}
		})
	})
}

// runBatch claims a batch, handles it and settles it. It returns its size.
func (r *raw) runBatch(handle func() error) (int, error) {
	ctx, name := context.Background(), claimNumber.Add(1)
	tasks, err := r.claim(ctx, name)
	if err != nil {
		return 0, err
	}
	var done, failed []rawTask
	for _, t := range tasks {
		if handle() == nil {
			done = append(done, t)
		} else {
			failed = append(failed, t)
		}
	}
	var settled int64
	if len(done) > 0 {
		if settled, err = r.done(ctx, name, done); err != nil {
			return 0, err
		}
	}
	if len(failed) > 0 {
		n, err := r.failed(ctx, name, failed)
		if err != nil {
			return 0, err
		}
		settled += n
	}
	if int(settled) != len(tasks) {
		return 0, fmt.Errorf("%d of %d tasks settled", settled, len(tasks))
	}
	return len(tasks), nil
}

// loops runs n copies of loop concurrently and returns the first error.
func loops(ctx context.Context, n int, loop func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	ended := make(chan error, n)
	for range n {
		go func() {
			err := loop(ctx)
			if err != nil {
				cancel(err)
			}
			ended <- err
		}()
	}
	var first error
	for range n {
		if err := <-ended; first == nil {
			first = err
		}
	}
	return first
}

// payloads returns n payloads.
func payloads(n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = encoded
	}
	return list
}

// idList returns the IDs of tasks as an SQL list: (1, 2, 3).
func idList(tasks []rawTask) string {
	b := []byte("(")
	for i, t := range tasks {
		if i > 0 {
			b = append(b, ", "...)
		}
		b = strconv.AppendInt(b, t.ID, 10)
	}
	return string(append(b, ')'))
}

// valuesOf repeats a row of VALUES n times.
func valuesOf(row string, n int) string { return strings.Repeat(row+", ", n-1) + row }

// scanTasks reads claimed tasks.
func scanTasks(rows *sql.Rows, err error) (tasks []rawTask, _ error) {
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var t rawTask
		if err := rows.Scan(&t.ID, &t.Attempts, &t.Payload); err != nil {
			return nil, err
		}
		tasks = append(tasks, t)
	}
	return tasks, rows.Err()
}

// affected returns the number of rows that a statement changed.
func affected(res sql.Result, err error) (int64, error) {
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}
