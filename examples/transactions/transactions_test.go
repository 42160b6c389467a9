package transactions

import (
	"context"
	"strings"
	"testing"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/pgdialect"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/examples/transactions/ent"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/ops"
)

// TestTasksShareTheFateOfTheirTransactions: by each library, an order and its task are
// stored together, or neither is.
func TestTasksShareTheFateOfTheirTransactions(t *testing.T) {
	dsn := testdb.DSN(t, testdb.Postgres)
	db, err := testdb.OpenDSN("pgx", dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	db.MustExec("create table orders (number integer primary key deferrable initially deferred)")
	q, err := falldue.New(db, falldue.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if err := q.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	gormDB, err := gorm.Open(postgres.New(postgres.Config{Conn: db.DB}))
	if err != nil {
		t.Fatal(err)
	}
	client := ent.NewClient(ent.Driver(entsql.OpenDB(dialect.Postgres, db.DB)))
	pool, err := pgxpool.New(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	number := int32(0)
	for name, place := range map[string]func(ctx context.Context, number int32) error{
		"gorm": func(ctx context.Context, number int32) error { return PlaceByGorm(ctx, gormDB, q, int(number)) },
		"gorm with prepared statements": func(ctx context.Context, number int32) error {
			return PlaceByGorm(ctx, gormDB.Session(&gorm.Session{PrepareStmt: true}), q, int(number))
		},
		"bun": func(ctx context.Context, number int32) error {
			return PlaceByBun(ctx, bun.NewDB(db.DB, pgdialect.New()), q, int(number))
		},
		"ent":  func(ctx context.Context, number int32) error { return PlaceByEnt(ctx, client, q, int(number)) },
		"sqlc": func(ctx context.Context, number int32) error { return PlaceBySqlc(ctx, pool, q, number) },
	} {
		number++
		if err := place(t.Context(), number); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := place(t.Context(), number); err == nil || !strings.Contains(err.Error(), "orders_pkey") {
			t.Errorf("%s: the same order again: error %v", name, err)
		}
		var orders int32
		if err := db.Get(&orders, "select count(*) from orders"); err != nil || orders != number {
			t.Errorf("%s: %d orders (error %v), want %d", name, orders, err, number)
		}
		page, err := ops.New(q).Tasks(t.Context(), ops.Filter{})
		if err != nil || len(page.Tasks) != int(number) {
			t.Errorf("%s: %d tasks (error %v), want %d", name, len(page.Tasks), err, number)
		}
	}
}
