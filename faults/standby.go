package faults

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/falldue/falldue/internal/testdb"
)

// postgres returns how to run a server of PostgreSQL on a port, with its data in the
// folder data of its own. The server acknowledges a commit only after its standby has
// it, so that a server whose standby was promoted can do no harm.
func (s *server) postgres(port string) {
	s.quit, s.User = syscall.SIGINT, "postgres"
	s.Launch = []string{
		lookUp("postgres"), "-D", filepath.Join(s.Folder, "data"), "-p", port,
		"-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=", "-c", "max_connections=200",
		"-c", "synchronous_standby_names=*", "-c", "wal_keep_size=128MB", "-c", "max_wal_size=256MB", "-c", "wal_retrieve_retry_interval=100ms",
	}
	s.dsn = fmt.Sprintf("postgres://postgres@127.0.0.1:%s/postgres?sslmode=disable", port)
}

// withoutStandby makes the server acknowledge a commit by itself.
func (d *database) withoutStandby(ctx context.Context) error {
	d.own.Launch = append(d.own.Launch, "-c", "synchronous_standby_names=")
	return d.own.restart(ctx, d.own.quit)
}

// addStandby starts a standby of PostgreSQL, which can be promoted.
func (d *database) addStandby(ctx context.Context) error {
	if d.engine != testdb.Postgres {
		return nil
	}
	port, err := freePort()
	if err != nil {
		return err
	}
	s := &server{engine: d.engine, program: d.own.program}
	s.Folder = filepath.Join(d.own.Folder, "standby")
	s.postgres(port)
	if err := os.Mkdir(s.Folder, 0o700); err != nil {
		return err
	}
	if err := s.follow(ctx, d.own); err != nil {
		return err
	}
	d.standby = s
	var addresses []string
	for _, s := range []*server{d.own, d.standby} {
		u, err := url.Parse(s.dsn)
		if err != nil {
			return err
		}
		addresses = append(addresses, u.Host)
	}
	d.addresses = strings.Join(addresses, ",")
	return d.inStep(ctx)
}

// follow makes a server that does not run the standby of another. It removes the
// server's own data.
func (s *server) follow(ctx context.Context, primary *server) error {
	data := filepath.Join(s.Folder, "data")
	if _, err := os.Stat(data); err == nil {
		// Processes of a killed server may still be ending. They keep the folder
		// under another name.
		old, err := os.MkdirTemp(s.Folder, "old-")
		if err != nil {
			return err
		}
		if err := os.Rename(data, filepath.Join(old, "data")); err != nil {
			return err
		}
		defer func() { _ = os.RemoveAll(old) }()
	}
	s.Create = []string{lookUp("pg_basebackup"), "-D", data, "-d", primary.dsn, "--write-recovery-conf", "--checkpoint=fast", "--no-sync"}
	return s.begin(ctx)
}

// promote makes the standby accept writes.
func (d *database) promote(ctx context.Context) error {
	var done bool
	err := onAdmin(d.standby, func(db *sqlx.DB) error { return db.GetContext(ctx, &done, "select pg_promote()") })
	if err == nil && !done {
		err = fmt.Errorf("%s was not promoted within a minute", d.standby.dsn)
	}
	return err
}

// exchange ends the server whose standby was promoted, and makes it the standby of the
// promoted one, so that it accepts no writes of its own any more.
func (d *database) exchange(ctx context.Context) error {
	d.own.end(syscall.SIGKILL)
	d.own, d.standby = d.standby, d.own
	return d.standby.follow(ctx, d.own)
}

// inStep waits until the standby has everything that the server has.
func (d *database) inStep(ctx context.Context) error {
	if d.standby == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	return onAdmin(d.own, func(db *sqlx.DB) error {
		for {
			var n int
			err := db.GetContext(ctx, &n, "select count(*) from pg_stat_replication where state = 'streaming' and sync_state = 'sync'")
			if err == nil && n == 1 {
				return nil
			}
			select {
			case <-ctx.Done():
				return fmt.Errorf("%s has %d standbys in step with it (error %w)", d.own.dsn, n, err)
			case <-time.After(50 * time.Millisecond):
			}
		}
	})
}

// onAdmin calls do with a connection to a server that no link is part of.
func onAdmin(s *server, do func(*sqlx.DB) error) error {
	db, err := sqlx.Open(testdb.Drivers(s.engine)[0], s.dsn)
	if err != nil {
		return err
	}
	defer db.Close()
	return do(db)
}

// severalHosts returns addresses, separated by commas, in a form that all drivers of
// PostgreSQL read, with the setting to connect to a primary alone.
func severalHosts(query url.Values, addresses string) {
	var hosts, ports []string
	for address := range strings.SplitSeq(addresses, ",") {
		host, port, _ := strings.Cut(address, ":")
		hosts, ports = append(hosts, host), append(ports, port)
	}
	query.Set("host", strings.Join(hosts, ","))
	query.Set("port", strings.Join(ports, ","))
	query.Set("target_session_attrs", "primary")
}
