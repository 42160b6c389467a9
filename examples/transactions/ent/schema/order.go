// Package schema describes the tables to ent.
package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema"
	"entgo.io/ent/schema/field"
)

// Order is the table orders.
type Order struct{ ent.Schema }

// Fields returns the columns.
func (Order) Fields() []ent.Field { return []ent.Field{field.Int("id").StorageKey("number")} }

// Annotations names the table.
func (Order) Annotations() []schema.Annotation {
	return []schema.Annotation{entsql.Annotation{Table: "orders"}}
}
