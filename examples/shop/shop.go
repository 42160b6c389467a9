package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/backoff"
)

// tables are the shop's own tables. Those of falldue are beside them.
var tables = []string{`
create table if not exists orders (
	id       varchar(26)  not null primary key,
	customer varchar(100) not null,
	coffee   varchar(100) not null,
	bags     integer      not null,
	cents    integer      not null,
	placed   varchar(10)  not null, -- the day
	status   varchar(20)  not null
)`, `
create table if not exists invoices (
	customer varchar(100) not null,
	month    varchar(7)   not null,
	cents    integer      not null,
	primary key (customer, month)
)`}

// Order is an order of a customer.
type Order struct {
	ID       string `json:"id"`
	Customer string `json:"customer"`
	Coffee   string `json:"coffee"`
	Bags     int    `json:"bags"`
	Cents    int    `json:"cents"`
	Placed   string `json:"placed"`
	Status   string `json:"status"`
}

// The arguments of tasks.
type (
	// Charge is an order that is to be paid.
	Charge struct {
		Order string `json:"order"`
	}
	// Mail is a mail to a customer.
	Mail struct {
		To   string `json:"to"`
		Text string `json:"text"`
	}
	// Export asks for all orders of a customer.
	Export struct {
		Customer string `json:"customer"`
	}
	// Invoice asks for a customer's invoice of a month, such as 2026-11.
	Invoice struct {
		Customer string `json:"customer"`
		Month    string `json:"month"`
	}
	// Month asks for the invoices of a month, or for a report about them.
	Month struct {
		Month string `json:"month"`
	}
)

// The kinds of tasks. Their key is the customer.
var (
	// The bank refuses two payments of a customer at once. It is asked for two days. Then the
	// task is dead, and a person decides: falldue retry, or falldue cancel.
	charging = falldue.NewKind[Charge]("charge", falldue.KindConfig{
		Policy:  backoff.Arctan(time.Hour).WithMaxElapsed(48 * time.Hour),
		Timeout: 30 * time.Second,
		Limits:  []falldue.Limit{falldue.AtMost(1).PerKey()},
	})
	// The mails to a customer are sent one after the other.
	mailing = falldue.NewKind[Mail]("mail", falldue.KindConfig{
		Timeout: 30 * time.Second,
		Limits:  []falldue.Limit{falldue.InOrder()},
	})
	// The result of an export can be fetched for a day.
	exporting = falldue.NewKind[Export]("export", falldue.KindConfig{DoneRetention: 24 * time.Hour})
	invoicing = falldue.NewKind[Invoice]("invoice", falldue.KindConfig{})
	closing   = falldue.NewKind[Month]("close-month", falldue.KindConfig{})
	reporting = falldue.NewKind[Month]("report-month", falldue.KindConfig{})
)

// Bank charges customers. It recognises a payment that it has made by its key.
type Bank interface {
	Charge(ctx context.Context, key, customer string, cents int) error
}

// errDeclined is what a bank returns for a customer who cannot pay.
var errDeclined = errors.New("declined")

// Mailer sends mails. It recognises a mail that it has sent by its key.
type Mailer interface {
	Send(ctx context.Context, key string, m Mail) error
}

// shop is what the service and the workers share.
type shop struct {
	db     *sqlx.DB
	queue  *falldue.Queue
	bank   Bank
	mailer Mailer
	today  func() string
}

func newShop(db *sqlx.DB, bank Bank, mailer Mailer) (*shop, error) {
	queue, err := falldue.New(db, falldue.Config{Concurrency: 20})
	if err != nil {
		return nil, err
	}
	s := &shop{db, queue, bank, mailer, func() string { return time.Now().UTC().Format(time.DateOnly) }}
	s.handle()
	return s, nil
}

func (s *shop) migrate(ctx context.Context) error {
	for _, table := range tables {
		if _, err := s.db.ExecContext(ctx, table); err != nil {
			return err
		}
	}
	return s.queue.Migrate(ctx)
}

// prices has the price of a bag of each coffee, in cents.
var prices = map[string]int{"Sidamo": 1150, "Huila": 1090, "Gesha": 3900}

// errOrder is what is wrong with an order.
var errOrder = errors.New("order")

// place stores an order together with its tasks, or none of them.
func (s *shop) place(ctx context.Context, o Order) (Order, error) {
	price := prices[o.Coffee]
	if o.Customer == "" || price == 0 || o.Bags < 1 || o.Bags > 100 {
		return o, fmt.Errorf("%w: %d bags of %q for %q; allowed are 1 to 100 bags of Sidamo, Huila or Gesha for a customer", errOrder, o.Bags, o.Coffee, o.Customer)
	}
	o.ID, o.Cents, o.Placed, o.Status = rand.Text(), o.Bags*price, s.today(), "placed"
	err := s.inTx(ctx, func(tx *sqlx.Tx) error {
		const insert = `insert into orders (id, customer, coffee, bags, cents, placed, status)
			values (:id, :customer, :coffee, :bags, :cents, :placed, :status)`
		if _, err := tx.NamedExecContext(ctx, insert, o); err != nil {
			return err
		}
		if err := s.mail(ctx, tx, o.Customer, "we have your order of "+o.Coffee); err != nil {
			return err
		}
		_, err := charging.EnqueueTx(ctx, s.queue, tx, Charge{o.ID}, &falldue.EnqueueOptions{Key: o.Customer})
		return err
	})
	return o, err
}

// mail enqueues a mail in a transaction.
func (s *shop) mail(ctx context.Context, tx *sqlx.Tx, to, text string) error {
	_, err := mailing.EnqueueTx(ctx, s.queue, tx, Mail{to, text}, &falldue.EnqueueOptions{Key: to})
	return err
}

// inTx runs fn in a transaction.
func (s *shop) inTx(ctx context.Context, fn func(tx *sqlx.Tx) error) error {
	tx, err := s.db.BeginTxx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // does nothing after the commit
	if err := fn(tx); err != nil {
		return err
	}
	return tx.Commit()
}
