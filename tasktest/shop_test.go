package tasktest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/tasktest"
)

// The tests that docs/testing.md shows, and the shop that they test.

type InvoiceArgs struct {
	Order int `json:"order"`
}

var SendInvoice = falldue.NewKind[InvoiceArgs]("invoice.send", falldue.KindConfig{
	Policy:        backoff.Constant(time.Hour).WithMaxAttempts(20),
	DoneRetention: 30 * 24 * time.Hour, // has results
})

// A mailer sends e-mails.
type mailer interface{ Send(order int) error }

var errBusy = errors.New("the mail server is busy")

// sendInvoice returns the handler of SendInvoice.
func sendInvoice(m mailer) func(context.Context, falldue.Task[InvoiceArgs]) error {
	return func(_ context.Context, t falldue.Task[InvoiceArgs]) error {
		switch err := m.Send(t.Args.Order); {
		case errors.Is(err, errBusy):
			return falldue.RetryAfter(10*time.Minute, err)
		case err != nil:
			return err
		}
		return t.SetResult("sent")
	}
}

// fakeMailer fails the first times.
type fakeMailer struct {
	failures []error
	sent     chan int
}

func (m *fakeMailer) Send(order int) error {
	if len(m.failures) > 0 {
		err := m.failures[0]
		m.failures = m.failures[1:]
		return err
	}
	m.sent <- order
	return nil
}

// placeOrder stores an order and enqueues its invoice.
func placeOrder(ctx context.Context, q *falldue.Queue, tx *sqlx.Tx, number int) error {
	if _, err := tx.ExecContext(ctx, fmt.Sprintf("insert into orders (number) values (%d)", number)); err != nil {
		return err
	}
	_, err := SendInvoice.EnqueueTx(ctx, q, tx, InvoiceArgs{Order: number})
	return err
}

// shop returns the database of a test.
func shop(t *testing.T) *sqlx.DB {
	db := testdb.Open(t, testdb.SQLite)
	db.MustExec("create table orders (number integer primary key)")
	return db
}

func TestSendInvoice(t *testing.T) {
	for _, test := range []struct {
		failure error
		want    falldue.Outcome
		wait    time.Duration
	}{
		{nil, falldue.OutcomeDone, 0},
		{errBusy, falldue.OutcomeRetriedAfter, 10 * time.Minute},
		{errors.New("no such host"), falldue.OutcomeRetried, 0},
	} {
		handle := sendInvoice(&fakeMailer{failures: []error{test.failure}, sent: make(chan int, 1)})
		task, record := tasktest.NewTaskOf(SendInvoice, InvoiceArgs{Order: 42}, falldue.Config{})
		task.Attempt = 3
		outcome, wait := tasktest.Asked(handle(t.Context(), task))
		if outcome != test.want || wait != test.wait {
			t.Errorf("after %v the task is %s, %v; want %s, %v", test.failure, outcome, wait, test.want, test.wait)
		}
		if outcome == falldue.OutcomeDone && string(record.Result()) != `"sent"` {
			t.Errorf("the result is %s", record.Result())
		}
	}
}

func TestPlaceOrder(t *testing.T) {
	db := shop(t)
	q := newQueue(t, db, falldue.Config{})
	tx := db.MustBegin()
	defer func() { _ = tx.Rollback() }() // nothing is left in the database
	if err := placeOrder(t.Context(), q, tx, 42); err != nil {
		t.Fatal(err)
	}
	tasktest.RequireEnqueuedTx(t, q, tx, SendInvoice, InvoiceArgs{Order: 42})
}

func TestInvoiceIsRetriedForADay(t *testing.T) {
	db := shop(t)
	clock := tasktest.NewClock(t, db) // before newQueue
	q := newQueue(t, db, falldue.Config{})
	down := errors.New("no such host")
	m := &fakeMailer{failures: []error{down, down, errBusy}, sent: make(chan int, 1)}
	falldue.Handle(q, SendInvoice, sendInvoice(m))
	if _, err := SendInvoice.Enqueue(t.Context(), q, InvoiceArgs{Order: 42}); err != nil {
		t.Fatal(err)
	}

	if ran := tasktest.RunOne(t, q); !errors.Is(ran.Err, down) || ran.State != falldue.StateOpen {
		t.Errorf("the first attempt: %+v", ran)
	}
	ran := clock.Advance(t, q, 24*time.Hour) // takes milliseconds
	if len(ran) != 3 || ran[2].State != falldue.StateDone {
		t.Errorf("in a day: %+v", ran)
	}
	tasktest.RequireNoneEnqueued(t, q, SendInvoice)
}

func TestWorkerSendsInvoices(t *testing.T) {
	db := shop(t)
	q := newQueue(t, db, falldue.Config{PollInterval: 10 * time.Millisecond})
	m := &fakeMailer{sent: make(chan int, 1)}
	falldue.Handle(q, SendInvoice, sendInvoice(m))

	ctx, stop := context.WithCancel(t.Context())
	stopped := make(chan error, 1)
	go func() { stopped <- q.Run(ctx) }()

	if _, err := SendInvoice.Enqueue(t.Context(), q, InvoiceArgs{Order: 42}); err != nil {
		t.Fatal(err)
	}
	select {
	case order := <-m.sent:
		if order != 42 {
			t.Errorf("sent the invoice of order %d", order)
		}
	case <-time.After(time.Minute):
		t.Error("no invoice was sent")
	}
	stop()
	if err := <-stopped; err != nil { // after a nil error, the outcome is recorded
		t.Error(err)
	}
}

func TestInvoicesAreRetriedForAboutADay(t *testing.T) {
	policy := SendInvoice.Config().Policy
	tasktest.AssertWait(t, policy, 1, time.Hour, 2*time.Hour)
	tasktest.AssertTotal(t, policy, 18*time.Hour, 24*time.Hour)
}
