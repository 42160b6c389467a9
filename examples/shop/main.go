// Shop is a small coffee roastery. Customers order coffee by HTTP, their bank is charged, mails
// tell them how it goes, and on the first of each month they get an invoice. The HTTP service
// and the workers are processes of their own, on PostgreSQL or MySQL.
//
//	export SHOP_DSN='postgres://user:password@localhost/shop' # or user:password@tcp(localhost)/shop
//	go run ./examples/shop migrate
//	go run ./examples/shop serve &
//	go run ./examples/shop work &
//	curl -d '{"customer": "ada", "coffee": "Sidamo"}' localhost:8080/orders
//
// Where to find what:
//
//   - transaction: place stores an order and its tasks together (shop.go). The handlers charge,
//     invoice and closeMonth (work.go) commit what they write together with the end of their task.
//   - unique: postInvoice (web.go).
//   - periodic: schedule, which asks for the invoices of each month (work.go).
//   - limit per customer: charging, one payment at a time (shop.go).
//   - sequence: mailing, one mail after the other (shop.go).
//   - web page for operators: routes (web.go), at http://localhost:8080/ops/falldue/.
//   - batch: closeMonth, all invoices of a month and then a mail (work.go).
//   - graceful stop: main and serve, below.
//   - tests: shop_test.go.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	_ "github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/jmoiron/sqlx"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the program immediately
	if err := run(ctx, os.Getenv("SHOP_DSN"), strings.Join(os.Args[1:], " ")); err != nil {
		fmt.Fprintln(os.Stderr, "shop:", err)
		os.Exit(1)
	}
}

// run runs a command until ctx ends, and finishes the requests or tasks that have begun.
func run(ctx context.Context, dsn, command string) error {
	db, err := open(dsn)
	if err != nil {
		return err
	}
	defer db.Close()
	s, err := newShop(db, console{})
	if err != nil {
		return err
	}
	switch command {
	case "migrate":
		return s.migrate(ctx)
	case "serve":
		listener, err := net.Listen("tcp", "localhost:8080")
		if err != nil {
			return err
		}
		slog.Info("the tasks of the shop have a web page", "url", fmt.Sprintf("http://%s/ops/falldue/", listener.Addr()))
		return serve(ctx, listener, s.routes(), 30*time.Second)
	case "work":
		return s.schedules.RunWorker(ctx) // any number of processes may work
	}
	return fmt.Errorf("command %q: must be migrate, serve or work", command)
}

func open(dsn string) (*sqlx.DB, error) {
	if strings.HasPrefix(dsn, "postgres://") {
		return sqlx.Open("pgx", dsn)
	}
	return sqlx.Open("mysql", dsn)
}

// serve answers requests until ctx ends, and finishes those that have begun. It cuts off those
// that take longer than patience, and returns an error.
func serve(ctx context.Context, listener net.Listener, routes http.Handler, patience time.Duration) error {
	server := &http.Server{Handler: routes, ReadHeaderTimeout: 10 * time.Second}
	stopped := make(chan error, 1)
	context.AfterFunc(ctx, func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		err := server.Shutdown(ctx)
		if err != nil {
			_ = server.Close()
		}
		stopped <- err
	})
	slog.Info("the shop is open", "address", listener.Addr())
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return <-stopped
}

// console stands for the bank and the mail server.
type console struct{}

func (console) Charge(_ context.Context, key, customer string, cents int) error {
	slog.Info("charged", "customer", customer, "cents", cents, "key", key)
	return nil
}

func (console) Send(_ context.Context, key string, m Mail) error {
	slog.Info("sent", "to", m.To, "text", m.Text, "key", key)
	return nil
}
