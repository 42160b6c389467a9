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
	"github.com/falldue/falldue/dash"
	"github.com/falldue/falldue/periodic"
)

// table is the shop's own table. falldue's tables are alongside it.
const table = `
create table if not exists orders (
	id       varchar(26)  not null primary key,
	customer varchar(100) not null,
	coffee   varchar(100) not null,
	cents    integer      not null,
	month    varchar(7)   not null, -- such as 2026-11
	status   varchar(20)  not null
)`

// Order is an order of a customer.
type Order struct {
	ID       string `json:"id"`
	Customer string `json:"customer"`
	Coffee   string `json:"coffee"`
	Cents    int    `json:"cents"`
	Month    string `json:"month"`
	Status   string `json:"status"` // placed or paid
}

// The arguments of tasks.
type (
	Charge  struct{ Order, Customer string }
	Mail    struct{ To, Text string }
	Invoice struct{ Customer, Month string }
	Month   struct{ Month string }
)

// The kinds of tasks. Charges and mails have the customer as their key, made of the arguments.
var (
	// The bank refuses concurrent payments of a customer. It is asked for two days. Then the
	// task is dead, and a person decides: falldue retry, or falldue cancel.
	charging = falldue.NewKind[Charge]("charge", falldue.KindConfig{
		Policy:  backoff.Arctan(time.Hour).WithMaxElapsed(48 * time.Hour),
		Timeout: 30 * time.Second,
		Limits:  []falldue.Limit{falldue.AtMost(1).PerKey()},
	}).KeyedBy(func(c Charge) string { return c.Customer })
	// The mails to a customer are sent one after the other.
	mailing = falldue.NewKind[Mail]("mail", falldue.KindConfig{
		Timeout: 30 * time.Second,
		Limits:  []falldue.Limit{falldue.InOrder()},
	}).KeyedBy(func(m Mail) string { return m.To })
	invoicing = falldue.NewKind[Invoice]("invoice", falldue.KindConfig{})
	closing   = falldue.NewKind[Month]("close-month", falldue.KindConfig{})
)

// Outside is the bank and the mail server. They recognise by its key what they have done.
type Outside interface {
	Charge(ctx context.Context, key, customer string, cents int) error
	Send(ctx context.Context, key string, m Mail) error
}

// shop is what the service and the workers share.
type shop struct {
	db        *sqlx.DB
	queue     *falldue.Queue
	schedules *periodic.Scheduler
	outside   Outside
	page      *dash.Handler // for operators
}

func newShop(db *sqlx.DB, outside Outside) (*shop, error) {
	queue, err := falldue.New(db, falldue.Config{})
	if err != nil {
		return nil, err
	}
	schedules, err := periodic.New(queue, schedule)
	if err != nil {
		return nil, err
	}
	page, err := dash.New(queue, dash.Options{Title: "roastery"}) // which shows all and changes nothing
	if err != nil {
		return nil, err
	}
	s := &shop{db, queue, schedules, outside, page}
	falldue.Handle(queue, charging, s.charge)
	falldue.Handle(queue, mailing, s.sendMail)
	falldue.Handle(queue, invoicing, s.invoice)
	falldue.Handle(queue, closing, s.closeMonth)
	return s, nil
}

func (s *shop) migrate(ctx context.Context) error {
	if _, err := s.db.ExecContext(ctx, table); err != nil {
		return err
	}
	return s.queue.Migrate(ctx)
}

// prices has the price of a bag of each coffee, in cents.
var prices = map[string]int{"Sidamo": 1150, "Huila": 1090, "Gesha": 3900}

// errOrder is what is wrong with an order.
var errOrder = errors.New("order")

// place stores an order together with its tasks, or none of them.
func (s *shop) place(ctx context.Context, customer, coffee string) (Order, error) {
	o := Order{rand.Text(), customer, coffee, prices[coffee], time.Now().UTC().Format("2006-01"), "placed"}
	if o.Cents == 0 || customer == "" || len(customer) > 100 {
		return o, fmt.Errorf("%w: %q for %q: must be Sidamo, Huila or Gesha, for a customer of up to 100 bytes", errOrder, coffee, customer)
	}
	return o, s.inTx(ctx, func(tx *sqlx.Tx) error {
		const insert = `insert into orders (id, customer, coffee, cents, month, status)
			values (:id, :customer, :coffee, :cents, :month, :status)`
		if _, err := tx.NamedExecContext(ctx, insert, o); err != nil {
			return err
		}
		if err := s.mail(ctx, tx, customer, "we have your order of "+coffee); err != nil {
			return err
		}
		_, err := charging.EnqueueTx(ctx, s.queue, tx, Charge{o.ID, customer})
		return err
	})
}

func (s *shop) order(ctx context.Context, id string) (o Order, err error) {
	err = s.db.GetContext(ctx, &o, s.db.Rebind("select * from orders where id = ?"), id)
	return o, err
}

// mail enqueues a mail in a transaction.
func (s *shop) mail(ctx context.Context, tx *sqlx.Tx, to, text string) error {
	_, err := mailing.EnqueueTx(ctx, s.queue, tx, Mail{to, text})
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
