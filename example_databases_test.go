package falldue_test

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"log"
	"sync"
	"sync/atomic"
	"time"

	"github.com/falldue/falldue"
)

// databases are the queues of an application, each on a separate database.
type databases []*falldue.Queue

// of returns the queue of a tenant. It always returns the same queue for a tenant.
func (d databases) of(tenant string) *falldue.Queue {
	hash := fnv.New32a()
	hash.Write([]byte(tenant))
	return d[int64(hash.Sum32())%int64(len(d))]
}

// run works on all databases until ctx ends. A database that is down does not delay the others.
func (d databases) run(ctx context.Context) {
	var workers sync.WaitGroup
	for _, q := range d {
		workers.Go(func() {
			for ctx.Err() == nil {
				if err := q.Run(ctx); err != nil {
					log.Print(err)
					select {
					case <-time.After(time.Second):
					case <-ctx.Done():
					}
				}
			}
		})
	}
	workers.Wait()
}

// An application spreads its tasks over several databases by tenant, and one worker process
// works on all of them.
func Example_severalDatabases() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	east, closeEast := openQueue(falldue.Config{})
	defer closeEast()
	west, closeWest := openQueue(falldue.Config{})
	defer closeWest()
	all := databases{east, west}

	invoice := falldue.NewKind[string]("invoice.send", falldue.KindConfig{})
	tenants := []string{"ann", "bob", "cleo", "dan", "eve", "fay"}
	var sent atomic.Int64
	for _, q := range all {
		falldue.Handle(q, invoice, func(_ context.Context, t falldue.Task[string]) error {
			if all.of(t.Args) != q {
				return errors.New("a task of another database")
			}
			if sent.Add(1) == int64(len(tenants)) {
				stop()
			}
			return nil
		})
	}
	for _, tenant := range tenants {
		if _, err := invoice.Enqueue(ctx, all.of(tenant), tenant); err != nil {
			log.Panic(err)
		}
	}

	all.run(ctx)
	fmt.Println("invoices sent:", sent.Load())
	// Output: invoices sent: 6
}
