package main

import (
	"context"
	"errors"
	"os"

	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/internal/testdb/galera"
)

// startCluster starts the nodes of a Galera cluster, and a balancer that spreads
// connections over them.
func startCluster(ctx context.Context) (s *server, err error) {
	dir, err := os.MkdirTemp(tempFolder(), "falldue-"+testdb.Galera+"-")
	if err != nil {
		return nil, err
	}
	var watchers []*watcher
	stop := func() {
		for _, w := range watchers {
			w.stop()
		}
		_ = os.Remove(dir) // the watchers have removed what was in it
	}
	defer func() {
		if err != nil {
			stop()
		}
	}()
	if err := os.Chmod(dir, 0o711); err != nil {
		return nil, err
	}
	nodes, err := galera.New(dir)
	if err != nil {
		return nil, err
	}
	var addresses []string
	for i, n := range nodes {
		create, serve, err := n.Commands(i == 0)
		if err != nil {
			return nil, err
		}
		if err := os.Mkdir(n.Folder, 0o700); err != nil {
			return nil, err
		}
		w, err := startWatcher(plan{Engine: testdb.Galera, Folder: n.Folder, Commands: [][]string{create, serve}})
		if err != nil {
			return nil, errors.Join(err, os.Remove(n.Folder))
		}
		watchers = append(watchers, w)
		err = w.await(ctx, func(ctx context.Context) error {
			_, err := n.State(ctx)
			return err
		})
		if err != nil {
			return nil, err
		}
		addresses = append(addresses, n.Address)
	}
	spread, err := galera.NewSpread(addresses)
	if err != nil {
		return nil, err
	}
	return &server{
		dsn: galera.DSN(spread.Address()), origin: "a cluster of Debian's programs",
		stop: func() { spread.Close(); stop() },
	}, nil
}
