package faults

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"github.com/go-sql-driver/mysql"
	"github.com/jmoiron/sqlx"

	"github.com/falldue/falldue/internal/testdb"
)

// database is the database under test: a new one on a server.
type database struct {
	engine, dsn string
	name        string // on the server; it is dropped after the run
	release     func() // ends a server that testdb runs, or nil
	addresses   string // of the server and its standby, if there is one
	disk        disk   // has all data; "" if it is on no disk of its own

	mu      sync.Mutex                                 // held by the fault that a server has
	restart func(ctx context.Context, kill bool) error // nil if the run must not restart the server
	own     *server                                    // nil if another process runs the server
	cluster *cluster                                   // the run's own, or nil
	standby *server                                    // of own, or nil
	pooler  *server                                    // in front of own, or nil
	vitess  []string                                   // the command that changes the Vitess cluster of the database, or nil
	unwatch func()                                     // no longer starts the pooler again, or nil
}

// openDatabase creates a database on a server: on the one that the environment
// names, or else on one that it starts for the run alone, or else, if the engine's
// programs are missing, on one that testdb finds.
func openDatabase(ctx context.Context, program, engine, folder string, pooled bool) (*database, error) {
	d := &database{engine: engine}
	if engine == testdb.SQLite {
		d.dsn = "file:" + filepath.Join(folder, "falldue.db") +
			"?_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)&_pragma=synchronous(NORMAL)&_txlock=immediate"
		return d, nil
	}
	dsn := os.Getenv(testdb.ServerVariable(engine))
	switch {
	case dsn != "" && engine == testdb.MySQL && os.Getenv(testdb.ControlVariable) != "":
		d.dsn, d.vitess = dsn, strings.Fields(os.Getenv(testdb.ControlVariable))
		return d, nil // its keyspace is for the run alone
	case dsn != "":
	case engine == testdb.Galera:
		var err error
		if d.cluster, err = startCluster(ctx, program, folder); err != nil {
			d.close(ctx)
			return nil, err
		}
		dsn = d.cluster.dsn()
	default:
		own, err := startServer(ctx, program, engine, folder)
		switch {
		case err == nil:
			d.own, dsn = own, own.dsn
			d.restart = d.restartOwn
			if pooled {
				err = d.withoutStandby(ctx)
			} else {
				err = d.addStandby(ctx)
			}
			if err != nil {
				d.close(ctx)
				return nil, err
			}
		case errors.Is(err, errNoProgram):
			if dsn, err = d.hold(ctx); err != nil {
				return nil, err
			}
		default:
			return nil, err
		}
	}
	d.name = fmt.Sprintf("falldue_faults_%08x", rand.Uint32())
	db, err := sqlx.Open(testdb.Drivers(engine)[0], dsn)
	if err != nil {
		return nil, err
	}
	defer db.Close()
	if _, err := db.ExecContext(ctx, "create database "+d.name); err != nil {
		d.close(ctx)
		return nil, err
	}
	if d.hasWorker() {
		if err := createWorker(ctx, db, d.name); err != nil {
			d.close(ctx)
			return nil, err
		}
	}
	d.dsn, err = changed(engine, dsn, d.addresses, d.name, nil)
	if err == nil && pooled {
		err = d.startPooler(ctx)
	}
	if err != nil {
		d.close(ctx)
		return nil, err
	}
	return d, nil
}

// restartOwn ends the run's own server and starts it again. It ends the server by
// kill -9, or in order but without waiting for clients.
func (d *database) restartOwn(ctx context.Context, kill bool) error {
	signal := d.own.quit
	if kill {
		signal = syscall.SIGKILL
	}
	return d.own.restart(ctx, signal)
}

// hold makes testdb find a server and keep it until the end of the run. hold can
// restart one that runs in a container.
func (d *database) hold(ctx context.Context) (dsn string, err error) {
	if dsn, err = d.serve(ctx, "keep"); err != nil {
		fmt.Fprintf(os.Stderr, "no fault will restart or kill the server of %s: %v\n", d.engine, err)
		return d.serve(ctx, "hold")
	}
	return dsn, nil
}

// serve runs testdb's program that finds or starts servers.
func (d *database) serve(ctx context.Context, how string) (dsn string, err error) {
	cmd, err := testdb.ServeCommand(ctx, how, d.engine)
	if err != nil {
		return "", err
	}
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return "", err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", err
	}
	if err := cmd.Start(); err != nil {
		return "", err
	}
	d.release = func() {
		_ = in.Close()
		_ = cmd.Wait() // the data is gone in any case
	}
	lines := bufio.NewReader(out)
	answer := func() (string, error) {
		line, err := lines.ReadString('\n')
		if err != nil {
			d.release()
			return "", fmt.Errorf("a server of %s that others hold: %w", d.engine, err)
		}
		return strings.TrimSpace(line), nil
	}
	if dsn, err = answer(); err != nil || how != "keep" {
		return dsn, err
	}
	d.restart = func(_ context.Context, kill bool) error {
		order := "restart"
		if kill {
			order = "kill"
		}
		if _, err := fmt.Fprintln(in, order); err != nil {
			return err
		}
		now, err := answer()
		if err == nil && now != dsn {
			err = fmt.Errorf("the server of %s came back at another address", d.engine)
		}
		return err
	}
	return dsn, nil
}

// close drops the database, or ends the server with it.
func (d *database) close(ctx context.Context) {
	switch {
	case d.engine == testdb.SQLite, d.vitess != nil:
	case d.cluster != nil:
		d.cluster.close()
	case d.own != nil:
		if d.pooler != nil {
			if d.unwatch != nil {
				d.unwatch()
			}
			d.pooler.end(d.pooler.quit)
		}
		if d.standby != nil {
			d.standby.end(d.standby.quit)
		}
		d.own.end(d.own.quit)
	case d.release != nil:
		d.release()
	default:
		db, err := sqlx.Open(testdb.Drivers(d.engine)[0], d.dsn)
		if err != nil {
			return
		}
		defer db.Close()
		stmt := "drop database " + d.name
		if d.engine == testdb.Postgres {
			// A session cannot drop its own database.
			if dsn, err := changed(d.engine, d.dsn, "", "postgres", nil); err == nil {
				_ = db.Close()
				if db, err = sqlx.Open(testdb.Drivers(d.engine)[0], dsn); err != nil {
					return
				}
			}
			stmt += " with (force)"
		}
		if _, err := db.ExecContext(ctx, stmt); err != nil {
			fmt.Fprintf(os.Stderr, "drop database %s: %v\n", d.name, err)
		}
	}
}

// address returns the address of the server, and after a comma that of its standby.
// For a cluster it is that of a random node, or of all.
func (d *database) address(dice *rand.Rand) string {
	if d.cluster != nil {
		return d.cluster.address(dice)
	}
	if d.addresses != "" {
		return d.addresses
	}
	dsn := d.dsn
	if d.pooler != nil {
		dsn = d.pooler.dsn
	}
	if d.engine == testdb.Postgres {
		u, err := url.Parse(dsn)
		if err != nil {
			return ""
		}
		return u.Host
	}
	cfg, err := mysql.ParseDSN(dsn)
	if err != nil {
		return ""
	}
	return cfg.Addr
}

// changed returns dsn with other addresses, separated by commas, and another
// database, unless those are empty, and with settings of the session added.
func changed(engine, dsn, address, database string, settings map[string]string) (string, error) {
	if engine == testdb.Postgres {
		u, err := url.Parse(dsn)
		if err != nil {
			return "", err
		}
		if database != "" {
			u.Path = "/" + database
		}
		q := u.Query()
		switch {
		case strings.Contains(address, ","):
			u.Host = ""
			severalHosts(q, address)
		case address != "":
			u.Host = address
		}
		for name, value := range settings {
			q.Set(name, value)
		}
		u.RawQuery = strings.ReplaceAll(q.Encode(), "+", "%20") // to the drivers a plus is a plus
		return u.String(), nil
	}
	cfg, err := mysql.ParseDSN(dsn)
	if err != nil {
		return "", err
	}
	if address != "" {
		cfg.Addr = address
	}
	if database != "" {
		cfg.DBName = database
	}
	if cfg.Params == nil {
		cfg.Params = map[string]string{}
	}
	for name, value := range settings {
		cfg.Params[name] = value
	}
	return cfg.FormatDSN(), nil
}
