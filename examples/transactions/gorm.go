package transactions

import (
	"context"

	"gorm.io/gorm"

	"github.com/falldue/falldue"
)

// GormOrder is a row of the table orders.
type GormOrder struct {
	Number int `gorm:"primaryKey"`
}

// TableName implements gorm's schema.Tabler.
func (GormOrder) TableName() string { return "orders" }

// PlaceByGorm stores an order and the task that sends its invoice, or neither.
func PlaceByGorm(ctx context.Context, db *gorm.DB, q *falldue.Queue, number int) error {
	return db.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
		if err := tx.Create(&GormOrder{Number: number}).Error; err != nil {
			return err
		}
		_, err := SendInvoice.EnqueueTx(ctx, q, tx.Statement.ConnPool, InvoiceArgs{Order: number})
		return err
	})
}
