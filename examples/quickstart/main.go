// Quickstart is an on-line shop for a day, an hour of which lasts a second:
//
//   - The shop asks an ERP how its orders get on. The ERP never calls back, so
//     "not ready yet" is an error, and the task asks again: soon at first, then
//     ever more seldom.
//   - It tells a partner of each order through a webhook, which is down for the
//     first hours of the day.
//   - It books an invoice that no number of attempts can book.
//
// Run it with no set-up, on SQLite in a temporary file, or on a server:
//
//	go run ./examples/quickstart
//	go run ./examples/quickstart --dsn 'postgres://user:password@localhost/shop?sslmode=disable'
//	go run ./examples/quickstart --dsn 'user:password@tcp(localhost)/shop'
//
// Its tables begin with quickstart_; they are dropped when it ends.
//
// This file is the shop, and all there is to know of falldue. Around it are the
// simulated world outside (world.go), the database (database.go), and what you
// see: rows of the task table, read while the tasks run (watch.go, screen.go,
// lines.go, summary.go).
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
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
)

func main() {
	dsn := flag.String("dsn", "", "where to run: postgres://…, user:password@tcp(host)/database, or a SQLite `file`; default is a temporary file")
	hour := flag.Duration("hour", time.Second, "how long an hour of the story lasts")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the program at once

	if _, err := quickstart(ctx, *dsn, *hour, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "quickstart:", err)
		os.Exit(1)
	}
}

// quickstart runs the shop until every task has ended, or ctx does.
func quickstart(ctx context.Context, dsn string, hour time.Duration, out io.Writer) (sum summary, err error) {
	if hour < 10*time.Millisecond || hour > time.Hour {
		return sum, fmt.Errorf("an hour that lasts %v; allowed are 10ms to 1h", hour)
	}
	db, closeDB, err := open(ctx, dsn)
	if err != nil {
		return sum, err
	}
	defer func() { err = errors.Join(err, closeDB()) }()

	queue, err := falldue.New(db, falldue.Config{
		Prefix:        "quickstart_", // its tables stand beside yours
		DoneRetention: time.Hour,     // tasks that are done stay, to be looked at
		// Tasks that a transaction enqueued are found at the next poll; those
		// that wait are not polled for: the worker sleeps until they fall due.
		PollInterval: max(hour/20, 10*time.Millisecond),
	})
	if err != nil {
		return sum, err
	}
	defer func() { err = errors.Join(err, dropTables(db)) }()
	if err := createTables(ctx, db, queue); err != nil {
		return sum, err
	}

	s := newShop(db, queue, world{hour: hour, opened: time.Now()})
	falldue.Handle(queue, s.progress, s.askProgress)
	falldue.Handle(queue, s.webhook, s.deliver)
	falldue.Handle(queue, s.invoice, s.book)

	// Run works until its context ends. Then it lets running handlers finish.
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

// The arguments of a task are a type of yours. They are stored as JSON.
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

// shop is the application that falldue is embedded in.
type shop struct {
	db      *sqlx.DB
	queue   *falldue.Queue
	erp     *erp
	partner *http.Client

	// A kind is a name, the type of its arguments, and a policy. Yours are
	// variables of a package; these depend on how long an hour lasts.
	progress falldue.Kind[progressArgs]
	webhook  falldue.Kind[webhookArgs]
	invoice  falldue.Kind[invoiceArgs]
}

func newShop(db *sqlx.DB, queue *falldue.Queue, w world) *shop {
	hour := w.hour
	return &shop{
		db: db, queue: queue, erp: &erp{world: w}, partner: &http.Client{Transport: &partner{world: w}},

		// After 20 minutes, after 2.5 hours, then ever nearer to every eight
		// hours, for as long as it takes.
		progress: falldue.NewKind[progressArgs]("order.progress", falldue.KindConfig{
			Policy:  backoff.Arctan(8 * hour),
			Timeout: hour,
		}),
		// From half an hour by the same factor to four hours. The jitter keeps
		// the deliveries from knocking all at once when the partner is back.
		webhook: falldue.NewKind[webhookArgs]("webhook.deliver", falldue.KindConfig{
			Policy:  backoff.Geometric(hour/2, 4*hour, 6).WithJitter("0.2 * delay"),
			Timeout: hour,
		}),
		// Any formula over n, the number of failed attempts, will do.
		invoice: falldue.NewKind[invoiceArgs]("invoice.book", falldue.KindConfig{
			Policy: backoff.ParseDeferred(fmt.Sprintf("delay %gs * n^2; attempts 3", hour.Seconds())),
		}),
	}
}

// place takes an order. The row of the shop and the tasks that follow from it
// are one transaction: there is never the one without the others.
func (s *shop) place(ctx context.Context, order int) error {
	return inTx(ctx, s.db, func(tx *sqlx.Tx) error {
		insert := tx.Rebind(`insert into quickstart_orders (number, status) values (?, 'placed')`)
		if _, err := tx.ExecContext(ctx, insert, order); err != nil {
			return err
		}
		if _, err := s.progress.EnqueueTx(ctx, s.queue, tx, progressArgs{Order: order}, nil); err != nil {
			return err
		}
		_, err := s.webhook.EnqueueTx(ctx, s.queue, tx, webhookArgs{Order: order, Event: "placed"}, nil)
		return err
	})
}

// orders are those of the day. The invoice of the first ends in a letter O.
var orders = []int{1001, 1002, 1003, 1004}

// takeOrders takes the orders of the day.
func (s *shop) takeOrders(ctx context.Context) error {
	for _, order := range orders {
		if err := s.place(ctx, order); err != nil {
			return fmt.Errorf("place order %d: %w", order, err)
		}
	}
	// Where there is no transaction to be part of, Enqueue has its own.
	_, err := s.invoice.Enqueue(ctx, s.queue, invoiceArgs{Order: orders[0], Total: "19.9O"}, nil)
	return err
}

// askProgress handles order.progress. Any error runs the task again, when its
// policy says so.
func (s *shop) askProgress(ctx context.Context, t falldue.Task[progressArgs]) error {
	status, err := s.erp.status(ctx, t.Args.Order)
	if err != nil {
		return err
	}
	if status != shipped {
		return fmt.Errorf("order %d is %s", t.Args.Order, status)
	}
	// The shop's own update, the next task, and the end of this one commit
	// together, so that each of them happens exactly once.
	return inTx(ctx, s.db, func(tx *sqlx.Tx) error {
		update := tx.Rebind(`update quickstart_orders set status = ? where number = ?`)
		if _, err := tx.ExecContext(ctx, update, status, t.Args.Order); err != nil {
			return err
		}
		if _, err := s.webhook.EnqueueTx(ctx, s.queue, tx, webhookArgs{Order: t.Args.Order, Event: status}, nil); err != nil {
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
		return falldue.Discard(err) // no attempt would mend that
	}
	// Deliveries are at least once; this lets the partner tell a second one.
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
		// The partner knows better than the policy.
		if seconds, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil {
			return falldue.RetryAfter(time.Duration(seconds)*time.Second, errors.New("the partner says "+resp.Status))
		}
	}
	return errors.New("the partner says " + resp.Status)
}

// book handles invoice.book.
func (s *shop) book(_ context.Context, t falldue.Task[invoiceArgs]) error {
	if _, err := strconv.ParseFloat(t.Args.Total, 64); err != nil {
		return fmt.Errorf("total of order %d: %w", t.Args.Order, err)
	}
	return nil
}
