// Webhooks is a service that delivers webhooks. Tenants register endpoints and send events to its API. For each event,
// workers call all endpoints of the tenant, until each has answered with a status 2xx. README.md shows how to start it.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	_ "github.com/go-sql-driver/mysql" // driver mysql
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/jmoiron/sqlx"
	_ "modernc.org/sqlite" // driver sqlite

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/pgxqueue"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the program immediately
	if err := run(ctx, strings.Join(os.Args[1:], " ")); err != nil {
		log.Fatal(err)
	}
}

// run is one of the programs, until ctx ends.
func run(ctx context.Context, program string) error {
	if program == "partner" {
		return partner(ctx)
	}
	pool, err := openPool(ctx, os.Getenv("WEBHOOKS_DSN"))
	if err != nil {
		return fmt.Errorf("WEBHOOKS_DSN: %w", err)
	}
	defer pool.close()
	s, err := newService(pool)
	if err != nil {
		return err
	}
	switch program {
	case "api":
		if err := s.migrate(ctx); err != nil {
			return err
		}
		return serve(ctx, "localhost:8080", s.routes())
	case "worker":
		return s.queue.Run(ctx) // returns when all handlers have
	}
	return errors.New("usage: webhooks api|worker|partner")
}

// serve answers requests until ctx ends, and finishes those that have begun.
func serve(ctx context.Context, address string, routes http.Handler) error {
	log.Printf("listening on http://%s", address)
	server := &http.Server{Addr: address, Handler: routes, ReadHeaderTimeout: 10 * time.Second}
	failed := make(chan error, 1)
	go func() { failed <- server.ListenAndServe() }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
		return server.Shutdown(context.WithoutCancel(ctx))
	}
}

// pool has the connections of a process. Only the rest of this file depends on the database.
type pool struct {
	*sqlx.DB
	pgx *pgxpool.Pool // of the same connections, on PostgreSQL
}

func openPool(ctx context.Context, dsn string) (*pool, error) {
	driver := "mysql"
	switch scheme, _, _ := strings.Cut(dsn, ":"); scheme {
	case "":
		return nil, errors.New("is empty: set it to postgres://…, user:password@tcp(host)/database or file:…")
	case "postgres":
		connections, err := pgxpool.New(ctx, dsn)
		if err != nil {
			return nil, err
		}
		return &pool{sqlx.NewDb(stdlib.OpenDBFromPool(connections), "pgx"), connections}, nil
	case "file":
		driver = "sqlite"
	}
	db, err := sqlx.Open(driver, dsn)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(20)
	db.SetMaxIdleConns(20)
	return &pool{DB: db}, nil
}

func (p *pool) newQueue(cfg falldue.Config) (*falldue.Queue, error) {
	if p.pgx != nil {
		return pgxqueue.New(p.pgx, cfg)
	}
	return falldue.New(p.DB, cfg)
}

func (p *pool) close() {
	_ = p.Close()
	if p.pgx != nil {
		p.pgx.Close()
	}
}
