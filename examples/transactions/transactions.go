// Package transactions shows how tasks are enqueued in the transactions of gorm, ent, bun
// and sqlc. It is a module of its own, so that falldue does not require them.
package transactions

import "github.com/falldue/falldue"

// InvoiceArgs are the arguments of tasks that send an invoice.
type InvoiceArgs struct {
	Order int `json:"order"`
}

// SendInvoice is the kind of those tasks.
var SendInvoice = falldue.NewKind[InvoiceArgs]("send-invoice", falldue.KindConfig{})
