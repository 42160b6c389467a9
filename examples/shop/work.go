package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/flow"
	"github.com/falldue/falldue/periodic"
)

// handle registers the handlers of all tasks.
func (s *shop) handle() {
	falldue.Handle(s.queue, charging, s.charge)
	falldue.Handle(s.queue, mailing, s.sendMail)
	falldue.Handle(s.queue, exporting, s.export)
	falldue.Handle(s.queue, invoicing, s.invoice)
	falldue.Handle(s.queue, closing, s.closeMonth)
	falldue.Handle(s.queue, reporting, s.reportMonth)
}

// schedules returns what happens by itself: on the first of each month, the invoices of the
// month before.
func (s *shop) schedules() (*periodic.Scheduler, error) {
	return periodic.New(s.queue, periodic.Schedule{
		Name: "invoices", Spec: "0 6 1 * *", Zone: "Europe/Berlin", Missed: periodic.All(12),
		TaskAt: func(tick time.Time) falldue.EnqueueParams {
			return closing.Params(Month{tick.AddDate(0, -1, 0).Format("2006-01")}, nil)
		},
	})
}

// work runs handlers until ctx ends, and finishes those that have begun. Any number of
// processes may work.
func (s *shop) work(ctx context.Context) error {
	schedules, err := s.schedules()
	if err != nil {
		return err
	}
	return schedules.RunWorker(ctx)
}

// charge charges a customer for an order. A worker that dies after the bank has been asked
// asks it again: the bank knows the key.
func (s *shop) charge(ctx context.Context, t falldue.Task[Charge]) error {
	o, err := s.order(ctx, t.Args.Order)
	if err != nil {
		return err
	}
	status, text := "paid", "thank you for your payment"
	switch err := s.bank.Charge(ctx, o.ID, o.Customer, o.Cents); {
	case errors.Is(err, errDeclined):
		status, text = "declined", "your bank has declined the payment"
	case err != nil:
		return err // the bank is down: later again
	}
	// The order, the mail and the end of this task are written together, once.
	return s.inTx(ctx, func(tx *sqlx.Tx) error {
		if _, err := tx.ExecContext(ctx, tx.Rebind("update orders set status = ? where id = ?"), status, o.ID); err != nil {
			return err
		}
		if err := s.mail(ctx, tx, o.Customer, text); err != nil {
			return err
		}
		return t.DoneTx(ctx, tx)
	})
}

func (s *shop) order(ctx context.Context, id string) (o Order, err error) {
	err = s.db.GetContext(ctx, &o, s.db.Rebind("select * from orders where id = ?"), id)
	return o, err
}

func (s *shop) sendMail(ctx context.Context, t falldue.Task[Mail]) error {
	return s.mailer.Send(ctx, fmt.Sprint("mail ", t.ID), t.Args)
}

// export gathers all orders of a customer.
func (s *shop) export(ctx context.Context, t falldue.Task[Export]) error {
	ids := []string{}
	if err := s.db.SelectContext(ctx, &ids, s.db.Rebind("select id from orders where customer = ? order by placed, id"), t.Args.Customer); err != nil {
		return err
	}
	orders := make([]Order, len(ids))
	for i, id := range ids { // slow on purpose: one by one
		var err error
		if orders[i], err = s.order(ctx, id); err != nil {
			return err
		}
		t.Progress(float64(i+1)/float64(len(ids)), "")
	}
	return t.SetResult(orders)
}

// closeMonth enqueues the invoices of a month, one for each customer who has paid something, and
// the report that follows when all of them are written.
func (s *shop) closeMonth(ctx context.Context, t falldue.Task[Month]) error {
	var customers []string
	const query = "select distinct customer from orders where status = 'paid' and placed like ? order by customer"
	if err := s.db.SelectContext(ctx, &customers, s.db.Rebind(query), t.Args.Month+"-%"); err != nil {
		return err
	}
	batch := flow.Batch()
	for _, customer := range customers {
		batch.Add(invoicing.Params(Invoice{customer, t.Args.Month}, nil))
	}
	batch.Then(reporting.Params(t.Args, nil))
	return s.inTx(ctx, func(tx *sqlx.Tx) error {
		if _, err := batch.EnqueueTx(ctx, s.queue, tx); err != nil {
			return err
		}
		return t.DoneTx(ctx, tx)
	})
}

// reportMonth tells the bookkeeper about the invoices of a month.
func (s *shop) reportMonth(ctx context.Context, t falldue.Task[Month]) error {
	var sum struct{ Invoices, Cents int }
	const query = "select count(*) as invoices, coalesce(sum(cents), 0) as cents from invoices where month = ?"
	if err := s.db.GetContext(ctx, &sum, s.db.Rebind(query), t.Args.Month); err != nil {
		return err
	}
	return s.inTx(ctx, func(tx *sqlx.Tx) error {
		text := fmt.Sprintf("%d invoices of %s: %d.%02d euros", sum.Invoices, t.Args.Month, sum.Cents/100, sum.Cents%100)
		if err := s.mail(ctx, tx, "bookkeeper", text); err != nil {
			return err
		}
		return t.DoneTx(ctx, tx)
	})
}

// invoice writes the invoice of a customer.
func (s *shop) invoice(ctx context.Context, t falldue.Task[Invoice]) error {
	return s.inTx(ctx, func(tx *sqlx.Tx) error {
		var cents int
		const query = "select sum(cents) from orders where status = 'paid' and customer = ? and placed like ?"
		if err := tx.GetContext(ctx, &cents, tx.Rebind(query), t.Args.Customer, t.Args.Month+"-%"); err != nil {
			return err
		}
		const insert = "insert into invoices (customer, month, cents) values (?, ?, ?)"
		if _, err := tx.ExecContext(ctx, tx.Rebind(insert), t.Args.Customer, t.Args.Month, cents); err != nil {
			return err
		}
		text := fmt.Sprintf("your invoice of %s: %d.%02d euros", t.Args.Month, cents/100, cents%100)
		if err := s.mail(ctx, tx, t.Args.Customer, text); err != nil {
			return err
		}
		return t.DoneTx(ctx, tx)
	})
}
