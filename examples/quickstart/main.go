// Quickstart simulates one day of an online shop, in which an hour lasts a second:
//
//   - The shop asks its ERP system for the status of each order. The ERP does not
//     send notifications, so the handler returns "not ready yet" as an error, and
//     the task asks again: soon at first, then less and less often.
//   - The shop notifies a partner of each order through a webhook. The partner is
//     down for the first hours of the day.
//   - The shop books an invoice that is invalid, so every attempt fails.
//
// Without arguments it runs on SQLite in a temporary file. With --dsn it runs on a
// server:
//
//	go run ./examples/quickstart
//	go run ./examples/quickstart --dsn 'postgres://user:password@localhost/shop?sslmode=disable'
//	go run ./examples/quickstart --dsn 'user:password@tcp(localhost)/shop'
//
// The names of its tables begin with quickstart_. It drops them when it ends.
//
// This file is the shop; it contains all uses of falldue that an application
// needs. The other files simulate the outside world (world.go), prepare the
// database (database.go), serve the web page (page.go), and display the rows of the task table while the tasks
// run (watch.go, screen.go, lines.go, summary.go). Package examples/outage shows an outage with thousands of tasks.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/internal/demo"
)

func main() {
	dsn := flag.String("dsn", "", "the database: postgres://…, mysql://…, user:password@tcp(host)/database, sqlite:path, or an existing SQLite `file` (default a temporary file)")
	hour := flag.Duration("hour", time.Second, "how long an hour of the simulation lasts")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the program immediately

	if _, err := quickstart(ctx, *dsn, *hour, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "quickstart:", err)
		os.Exit(1)
	}
}

// quickstart runs the shop until every task has ended, or ctx does.
func quickstart(ctx context.Context, dsn string, hour time.Duration, out io.Writer) (sum summary, err error) {
	if hour < 10*time.Millisecond || hour > time.Hour {
		return sum, fmt.Errorf("--hour is %v: must be from 10ms to 1h", hour)
	}
	db, _, closeDB, err := demo.Open(ctx, dsn)
	if err != nil {
		return sum, err
	}
	defer func() { err = errors.Join(err, closeDB()) }()

	logger := slog.Default()
	if demo.IsTerminal(out) {
		logger = slog.New(slog.DiscardHandler) // lines would break the table, which shows the same errors
	}
	queue, err := falldue.New(db, falldue.Config{
		Logger:        logger,
		Prefix:        "quickstart_", // the names of the tables begin with it
		DoneRetention: time.Hour,     // keeps done tasks, so that they can be displayed
		// A poll finds new tasks that were enqueued in a transaction. Waiting
		// tasks need no poll: the worker sleeps until they are due.
		PollInterval: max(hour/20, 10*time.Millisecond),
	})
	if err != nil {
		return sum, err
	}
	defer func() { err = errors.Join(err, dropTables(db)) }()
	if err := createTables(ctx, db, queue); err != nil {
		return sum, err
	}

	address, closePage, err := servePage(queue, logger)
	if err != nil {
		return sum, err
	}
	defer func() { err = errors.Join(err, closePage()) }()
	fmt.Fprintf(out, "The tasks have a web page while the shop is open: %s\n\n", address)

	s := newShop(db, queue, world{hour: hour, opened: time.Now()})
	falldue.Handle(queue, s.progress, s.askProgress)
	falldue.Handle(queue, s.webhook, s.deliver)
	falldue.Handle(queue, s.invoice, s.book)

	// Run runs tasks until its context ends, then waits for running handlers.
	work, stop := context.WithCancel(ctx)
	defer stop()
	stopped := make(chan error, 1)
	go func() {
		defer stop()
		stopped <- queue.Run(work)
	}()

	w := newWatcher(queue, hour, out, []rule{
		{s.progress.Name(), s.progress.Policy},
		{s.webhook.Name(), s.webhook.Policy},
		{s.invoice.Name(), s.invoice.Policy},
	})
	if err = s.takeOrders(work); err == nil {
		err = w.untilAllEnded(work)
	}
	stop()
	if err := errors.Join(<-stopped, err); err != nil && ctx.Err() == nil {
		return sum, err
	}
	return w.summarize(db, out)
}

// The arguments of a task have a type of your own. They are stored as JSON.
type (
	progressArgs struct {
		Order int `json:"order"`
	}
	webhookArgs struct {
		Order int    `json:"order"`
		Event string `json:"event"`
	}
	invoiceArgs struct {
		Order int    `json:"order"`
		Total string `json:"total"`
	}
)

// shop is the application.
type shop struct {
	db      *sqlx.DB
	queue   *falldue.Queue
	erp     *erp
	partner *http.Client

	// A kind has a name, a type of arguments, and a policy. Usually kinds are
	// package variables; these are fields since they depend on the length of
	// an hour.
	progress falldue.Kind[progressArgs]
	webhook  falldue.Kind[webhookArgs]
	invoice  falldue.Kind[invoiceArgs]
}

func newShop(db *sqlx.DB, queue *falldue.Queue, w world) *shop {
	hour := w.hour
	return &shop{
		db: db, queue: queue, erp: &erp{world: w}, partner: &http.Client{Transport: &partner{world: w}},

		// The waits are 20 minutes, 2.5 hours, and more, up to almost eight
		// hours. The number of attempts has no limit.
		progress: falldue.NewKind[progressArgs]("order.progress", falldue.KindConfig{
			Policy:  backoff.Arctan(8 * hour),
			Timeout: hour,
		}),
		// The waits grow from half an hour to four hours by a constant factor.
		// The jitter keeps the deliveries from arriving together when the
		// partner is back.
		webhook: falldue.NewKind[webhookArgs]("webhook.deliver", falldue.KindConfig{
			Policy:  backoff.Geometric(hour/2, 4*hour, 6).WithJitter("0.2 * delay"),
			Timeout: hour,
		}),
		// A policy can use any formula over n, the number of failed attempts.
		invoice: falldue.NewKind[invoiceArgs]("invoice.book", falldue.KindConfig{
			Policy: backoff.ParseDeferred(fmt.Sprintf("delay %gs * n^2; attempts 3", hour.Seconds())),
		}),
	}
}

// placeOrder inserts an order and enqueues its tasks in one transaction, so neither
// can exist without the other.
func (s *shop) placeOrder(ctx context.Context, order int) error {
	return inTx(ctx, s.db, func(tx *sqlx.Tx) error {
		insert := tx.Rebind(`insert into quickstart_orders (number, status) values (?, 'placed')`)
		if _, err := tx.ExecContext(ctx, insert, order); err != nil {
			return err
		}
		if _, err := s.progress.EnqueueTx(ctx, s.queue, tx, progressArgs{Order: order}); err != nil {
			return err
		}
		_, err := s.webhook.EnqueueTx(ctx, s.queue, tx, webhookArgs{Order: order, Event: "placed"})
		return err
	})
}

// orders are the orders of the day. The total of the first invoice ends in the
// letter O.
var orders = []int{1001, 1002, 1003, 1004}

// takeOrders places the orders of the day.
func (s *shop) takeOrders(ctx context.Context) error {
	for _, order := range orders {
		if err := s.placeOrder(ctx, order); err != nil {
			return fmt.Errorf("place order %d: %w", order, err)
		}
	}
	// Without a transaction of the caller, Enqueue uses its own.
	_, err := s.invoice.Enqueue(ctx, s.queue, invoiceArgs{Order: orders[0], Total: "19.9O"})
	return err
}

// askProgress handles order.progress. If it returns an error, the task runs again
// when its policy says.
func (s *shop) askProgress(ctx context.Context, t falldue.Task[progressArgs]) error {
	status, err := s.erp.status(ctx, t.Args.Order)
	if err != nil {
		return err
	}
	if status != shipped {
		return fmt.Errorf("order %d is %s", t.Args.Order, status)
	}
	// The shop's own update, the next task, and the end of this task commit
	// together, so each of them happens exactly once.
	return inTx(ctx, s.db, func(tx *sqlx.Tx) error {
		update := tx.Rebind(`update quickstart_orders set status = ? where number = ?`)
		if _, err := tx.ExecContext(ctx, update, status, t.Args.Order); err != nil {
			return err
		}
		if _, err := s.webhook.EnqueueTx(ctx, s.queue, tx, webhookArgs{Order: t.Args.Order, Event: status}); err != nil {
			return err
		}
		return t.DoneTx(ctx, tx)
	})
}

// deliver handles webhook.deliver.
func (s *shop) deliver(ctx context.Context, t falldue.Task[webhookArgs]) error {
	body := fmt.Sprintf(`{"order": %d, "event": %q}`, t.Args.Order, t.Args.Event)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://partner.example/hook", strings.NewReader(body))
	if err != nil {
		return falldue.Discard(err) // another attempt would not help
	}
	// A delivery happens at least once. With this header the partner can detect
	// a second one.
	req.Header.Set("Idempotency-Key", strconv.FormatInt(t.ID, 10))
	resp, err := s.partner.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	switch {
	case resp.StatusCode < 300:
		return nil
	case resp.StatusCode == http.StatusServiceUnavailable:
		// The header says when to retry. It replaces the delay of the policy.
		if seconds, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil {
			return falldue.RetryAfter(time.Duration(seconds)*time.Second, errors.New("the partner answered "+resp.Status))
		}
	}
	return errors.New("the partner answered " + resp.Status)
}

// book handles invoice.book.
func (s *shop) book(_ context.Context, t falldue.Task[invoiceArgs]) error {
	if _, err := strconv.ParseFloat(t.Args.Total, 64); err != nil {
		return fmt.Errorf("total of order %d: %w", t.Args.Order, err)
	}
	return nil
}
