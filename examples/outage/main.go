// Outage shows what an operator can do while a partner is down, in half a minute:
//
//  1. Thousands of webhook deliveries fail, and are retried together: a thundering herd. Other tasks continue.
//  2. The retry policy is changed from outside the workers. All countdowns move, without a write to any task's row.
//  3. A worker is killed. Another worker runs the killed worker's tasks when their leases have expired.
//  4. The partner is back. A ramp releases the backlog gradually, without a herd.
//
// Without arguments it runs on SQLite in a temporary file. With --dsn it runs on a server:
//
//	go run ./examples/outage
//	go run ./examples/outage --dsn 'postgres://user:password@localhost/shop?sslmode=disable'
//	go run ./examples/outage --dsn 'user:password@tcp(localhost)/shop'
//
// The names of its tables begin with outage_. It drops them when it ends.
//
// The file worker.go is the application: a kind of task, a handler and a worker. The file script.go makes the calls of
// an operator. The other files simulate the partner (world.go), compare the rows (rows.go), and draw the screen
// (view.go, chart.go).
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http/httptest"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/internal/demo"
	"github.com/falldue/falldue/ops"
)

func main() {
	if os.Getenv(workerVariable) != "" { // a worker that this program has started
		if err := work(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	cfg := settings{second: time.Second, ramp: 10 * time.Second}
	flag.StringVar(&cfg.dsn, "dsn", "", "the database: postgres://…, mysql://…, user:password@tcp(host)/database, sqlite:path, or an existing SQLite `file` (default a temporary file)")
	flag.IntVar(&cfg.deliveries, "deliveries", 4000, "how many deliveries fail: 100 to 8,000")
	flag.Parse()
	if demo.IsTerminal(os.Stdout) {
		slog.SetDefault(slog.New(slog.DiscardHandler)) // lines would break the screen
	}

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the program immediately
	if _, err := outage(ctx, cfg, os.Stdout); err != nil && ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, "outage:", err)
		os.Exit(1)
	}
}

// outage plays the script until all deliveries have arrived, or ctx ends.
func outage(ctx context.Context, cfg settings, out io.Writer) (r result, err error) {
	if cfg.deliveries < 100 || cfg.deliveries > 8000 {
		return r, fmt.Errorf("--deliveries is %d: must be 100 to 8,000", cfg.deliveries)
	}
	db, dsn, closeDB, err := demo.Open(ctx, cfg.dsn)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, closeDB()) }()
	queue, err := newQueue(db, "")
	if err != nil {
		return r, err
	}
	if err := demo.DropTables(db, prefix); err != nil { // of an interrupted run
		return r, err
	}
	defer func() { err = errors.Join(err, demo.DropTables(db, prefix)) }()
	if err := queue.Migrate(ctx); err != nil {
		return r, err
	}

	outside := newWorld(cfg.second)
	server := httptest.NewServer(outside)
	defer server.Close()
	webhook := newWebhook(cfg.second)
	// This process runs no tasks, so it does not know their policy otherwise.
	operator, err := ops.New(queue).WithPolicies(map[string]backoff.Policy{webhook.Name(): webhook.Config().Policy})
	if err != nil {
		return r, err
	}
	s := &script{settings: cfg, db: db, queue: queue, ops: operator, webhook: webhook, world: outside, view: newView(out, queue, outside)}

	ctx, stop := context.WithCancelCause(ctx)
	defer func() {
		stop(nil)
		for _, w := range s.workers {
			<-w.ended
		}
	}()
	for _, name := range []string{"worker-1", "worker-2"} {
		w, err := startWorker(ctx, workerConfig{Name: name, DSN: dsn, World: server.URL, Second: cfg.second}, stop)
		if err != nil {
			return r, err
		}
		s.workers = append(s.workers, w)
	}
	shown := `"$DSN"` // the user's may have a password
	if cfg.dsn == "" {
		shown = "'" + dsn + "'"
	}
	fmt.Fprintf(out, "In a second terminal the commands below would do the same, after\nexport FALLDUE_PREFIX=%s FALLDUE_DSN=%s\n\n", prefix, shown)
	err = s.play(ctx)
	s.view.finish()
	return s.result, err
}
