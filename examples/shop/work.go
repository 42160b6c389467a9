package main

import (
	"context"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/flow"
	"github.com/falldue/falldue/periodic"
)

// charge charges a customer for an order. A worker that dies after the bank has been asked
// asks it again: the bank knows the key.
func (s *shop) charge(ctx context.Context, t falldue.Task[Charge]) error {
	o, err := s.order(ctx, t.Args.Order)
	if err != nil {
		return err
	}
	if err := s.outside.Charge(ctx, o.ID, o.Customer, o.Cents); err != nil {
		return err // later again, as the policy of the kind says
	}
	// The order, the mail and the end of this task are written together, once.
	return s.inTx(ctx, func(tx *sqlx.Tx) error {
		if _, err := tx.ExecContext(ctx, tx.Rebind("update orders set status = 'paid' where id = ?"), o.ID); err != nil {
			return err
		}
		if err := s.mail(ctx, tx, o.Customer, "thank you for your payment"); err != nil {
			return err
		}
		return t.DoneTx(ctx, tx)
	})
}

func (s *shop) sendMail(ctx context.Context, t falldue.Task[Mail]) error {
	return s.outside.Send(ctx, fmt.Sprint("mail ", t.ID), t.Args)
}

// invoice tells a customer what the paid orders of a month cost.
func (s *shop) invoice(ctx context.Context, t falldue.Task[Invoice]) error {
	return s.inTx(ctx, func(tx *sqlx.Tx) error {
		var cents int
		const query = "select coalesce(sum(cents), 0) from orders where status = 'paid' and customer = ? and month = ?"
		if err := tx.GetContext(ctx, &cents, tx.Rebind(query), t.Args.Customer, t.Args.Month); err != nil {
			return err
		}
		text := fmt.Sprintf("your invoice of %s: %d.%02d euros", t.Args.Month, cents/100, cents%100)
		if err := s.mail(ctx, tx, t.Args.Customer, text); err != nil {
			return err
		}
		return t.DoneTx(ctx, tx)
	})
}

// schedule closes each month on the first of the next one, even if no worker ran then.
var schedule = periodic.Schedule{
	Name: "invoices", Spec: "0 6 1 * *", Missed: periodic.All(12),
	TaskAt: func(tick time.Time) falldue.EnqueueParams {
		return closing.Params(Month{tick.AddDate(0, -1, 0).Format("2006-01")})
	},
}

// closeMonth enqueues the invoices of a month, one for each customer who has paid something, and
// the mail that follows when all of them are written.
func (s *shop) closeMonth(ctx context.Context, t falldue.Task[Month]) error {
	var customers []string
	const query = "select distinct customer from orders where status = 'paid' and month = ?"
	if err := s.db.SelectContext(ctx, &customers, s.db.Rebind(query), t.Args.Month); err != nil {
		return err
	}
	batch := flow.Batch()
	for _, customer := range customers {
		batch.Add(invoicing.Params(Invoice{customer, t.Args.Month}))
	}
	text := fmt.Sprintf("the %d invoices of %s are written", len(customers), t.Args.Month)
	batch.Then(mailing.Params(Mail{"bookkeeper", text}))
	return s.inTx(ctx, func(tx *sqlx.Tx) error {
		if _, err := batch.EnqueueTx(ctx, s.queue, tx); err != nil {
			return err
		}
		return t.DoneTx(ctx, tx)
	})
}
