package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"

	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/internal/testdb/galera"
)

// member is the argument of the watcher of a node, as JSON.
type member struct {
	galera.Node
	First bool // the node starts the cluster; the others join it
}

// nodeCommands returns the command lines that create and serve a node.
func nodeCommands(place string) ([][]string, error) {
	var m member
	if err := json.Unmarshal([]byte(place), &m); err != nil {
		return nil, err
	}
	create, serve, err := m.Commands(m.First)
	return [][]string{create, serve}, err
}

// startCluster starts the nodes of a Galera cluster, and a balancer that spreads
// connections over them.
func startCluster(ctx context.Context) (s *server, err error) {
	dir, err := os.MkdirTemp("", "falldue-"+testdb.Galera+"-")
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
		if _, _, err := n.Commands(i == 0); err != nil {
			return nil, err
		}
		if err := os.Mkdir(n.Folder, 0o700); err != nil {
			return nil, err
		}
		place, err := json.Marshal(member{n, i == 0})
		if err != nil {
			return nil, errors.Join(err, os.Remove(n.Folder))
		}
		w, err := startWatcher(testdb.Galera, n.Folder, string(place))
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
