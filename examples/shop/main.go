// Shop is a small coffee roastery with an HTTP service and workers of its own. Customers order
// coffee, their bank is charged, mails tell them how it goes, and on the first of each month
// they get an invoice.
//
//	export SHOP_DSN='postgres://user:password@localhost/shop' # or user:password@tcp(localhost)/shop
//	go run ./examples/shop migrate
//	go run ./examples/shop serve &
//	go run ./examples/shop work &
//	curl -d '{"customer": "ada", "coffee": "Sidamo", "bags": 2}' localhost:8080/orders
//
// What each file has:
//
//   - shop.go: the tables, the kinds of tasks, and how an order is stored in one transaction
//     with its tasks;
//   - web.go: the HTTP service, which enqueues tasks and reads their results;
//   - work.go: the handlers of the tasks, and the schedule of the invoices;
//   - shop_test.go: tests of all of it.
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
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the program at once
	if err := run(ctx, os.Getenv("SHOP_DSN"), strings.Join(os.Args[1:], " ")); err != nil {
		fmt.Fprintln(os.Stderr, "shop:", err)
		os.Exit(1)
	}
}

// run runs a command until ctx ends.
func run(ctx context.Context, dsn, command string) error {
	db, err := open(dsn)
	if err != nil {
		return err
	}
	defer db.Close()
	s, err := newShop(db, logBank{}, logMailer{})
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
		return serve(ctx, listener, s.routes())
	case "work":
		return s.work(ctx)
	}
	return fmt.Errorf("command %q; allowed are migrate, serve and work", command)
}

func open(dsn string) (*sqlx.DB, error) {
	if strings.HasPrefix(dsn, "postgres://") {
		return sqlx.Open("pgx", dsn)
	}
	return sqlx.Open("mysql", dsn)
}

// serve answers requests until ctx ends, and finishes those that have begun.
func serve(ctx context.Context, listener net.Listener, routes http.Handler) error {
	server := &http.Server{Handler: routes, ReadHeaderTimeout: 10 * time.Second}
	stopped := make(chan error, 1)
	context.AfterFunc(ctx, func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		stopped <- server.Shutdown(ctx)
	})
	slog.Info("the shop is open", "address", listener.Addr())
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return <-stopped
}

// logBank and logMailer stand for a bank and a mail server.
type (
	logBank   struct{}
	logMailer struct{}
)

func (logBank) Charge(_ context.Context, key, customer string, cents int) error {
	slog.Info("charged", "customer", customer, "cents", cents, "key", key)
	return nil
}

func (logMailer) Send(_ context.Context, key string, m Mail) error {
	slog.Info("sent", "to", m.To, "text", m.Text, "key", key)
	return nil
}
