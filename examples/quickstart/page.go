package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/dash"
)

// servePage serves the web page of a queue on a free port of this machine, until closePage is called. Everything is
// allowed, since only this machine reaches that port.
func servePage(queue *falldue.Queue, logger *slog.Logger) (address string, closePage func() error, err error) {
	page, err := dash.New(queue, dash.Options{
		Title: "quickstart", Refresh: time.Second, Logger: logger,
		Allow: func(context.Context, dash.User, dash.Action, dash.Target) bool { return true },
	})
	if err != nil {
		return "", nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("/ops/falldue/", http.StripPrefix("/ops/falldue", page))
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	stopped := make(chan error, 1)
	go func() { stopped <- server.Serve(listener) }()
	closePage = func() error {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		err := errors.Join(server.Shutdown(ctx), page.Close(ctx))
		if served := <-stopped; !errors.Is(served, http.ErrServerClosed) {
			err = errors.Join(err, served)
		}
		return err
	}
	return "http://" + listener.Addr().String() + "/ops/falldue/", closePage, nil
}
