package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/falldue/falldue"
)

// subject is a queue on one database: falldue, a peer, or plain statements. A
// method returns errors.ErrUnsupported where the system has no such function;
// then the measure is left out for that system.
type subject interface {
	// insert stores n due tasks, perCall tasks in each call.
	insert(ctx context.Context, n int) error
	// copyIn is insert by the engine's bulk load.
	copyIn(ctx context.Context, n int) error
	// insertOne stores one due task in its own transaction, as another process
	// would: it does not notify the worker of this process.
	insertOne(ctx context.Context) error
	// insertWaiting stores n tasks of 8 kinds, with 1 to 25 attempts, that wait
	// until tomorrow.
	insertWaiting(ctx context.Context, n int) error
	// work starts one worker, which calls handle for every task. stop ends it, and
	// returns when everything that was handled is settled.
	work(ctx context.Context, handle func() error) (stop func() error, err error)
	// close closes the connections to the database.
	close()
}

// settings says how a measure wants a subject to work.
type settings struct {
	done    retention // of tasks that are done
	fails   bool      // handlers return errors
	notify  bool      // the worker is notified of each task; queues do this in their own way
	listen  string    // the DSN by which a worker listens that is notified; "" for the system's own way
	limited bool      // two tasks of a key may run at once
	kinds   int       // that the worker handles in addition
	ordered bool      // the tasks of a key run in order
	queues  int       // how many queues the worker runs; 0: only the default queue; byPattern: all queues that match a pattern
	tenants bool      // keys have tenants and endpoints, with tenantLimits
	weights bool      // tenants have weights, see weightOf
	counts  bool      // the measure counts statements
	few     int       // how many handlers the worker has; 0: as many as handlers says
	hooks   falldue.Hooks
}

// concurrency returns how many tasks the worker runs at once.
func (s settings) concurrency() int { return cmp.Or(s.few, handlers) }

// retention says what happens to a task that is done.
type retention int

const (
	byDefault      retention = iota // what the system does by default
	kept                            // it stays in the table
	deleted                         // it is deleted at once
	keptBriefly                     // it stays for a second
	keptForMinutes                  // it stays for soakRetention
)

// open connects a subject to an empty database, and creates its tables.
type open func(ctx context.Context, db database, s settings) (subject, error)

// systems lists the subjects of each engine, by name, in the order of reports.
var systems = map[string][]struct {
	name string
	open open
}{
	postgres: {
		{tunedName, openFalldue(tuned)},
		{defaultName, openFalldue(defaults)},
		{meteredName, openMetered},
		{pooledName, openPooled},
		{pgxName, openPgx},
		{pgxPooledName, openPgxPooled},
		{rawName, openRawPostgres},
		{"river", openRiver(tuned)},
		{"river-default", openRiver(defaults)},
	},
	mySQL: {
		{tunedName, openFalldue(tuned)},
		{defaultName, openFalldue(defaults)},
		{meteredName, openMetered},
		{rawName, openRawMySQL},
		{"watermill", openWatermill(tuned)},
		{"watermill-default", openWatermill(defaults)},
	},
	mariaDB: {
		{tunedName, openFalldue(tuned)},
		{defaultName, openFalldue(defaults)},
		{meteredName, openMetered},
		{rawName, openRawMySQL},
		{"watermill", openWatermill(tuned)},
		{"watermill-default", openWatermill(defaults)},
	},
	tiDB: {
		{tunedName, openFalldue(tuned)},
		{defaultName, openFalldue(defaults)},
		{meteredName, openMetered},
	},
	sqlite: {
		{tunedName, openFalldue(tuned)},
		{defaultName, openFalldue(defaults)},
		{meteredName, openMetered},
		{rawName, openRawSQLite},
		{"river", openRiverSQLite(tuned)},
		{"river-default", openRiverSQLite(defaults)},
	},
}

// Names of systems that more than the list above names.
const (
	tunedName, defaultName, rawName = "falldue", "falldue-default", "raw"
	// pooledName is falldue through a pooler, pgxName falldue on pgx, and pgxPooledName that
	// through a pooler.
	pooledName, pgxName, pgxPooledName = "falldue-pooled", "falldue-pgx", "falldue-pgx-pooled"
	// meteredName is falldue with the metrics of promfalldue. Only --systems measures it.
	meteredName = "falldue-metrics"
)

// poolerVariable is the environment variable that has the address, as host:port, of a
// pooler in transaction mode in front of the server. Without it the systems that connect
// through it are left out.
const poolerVariable = "FALLDUE_BENCH_POOLER"

// variant says how a system is configured.
type variant bool

const (
	defaults variant = false // nothing set but the number of handlers
	tuned    variant = true  // set for throughput
)

const (
	// handlers is how many tasks a worker runs at once.
	handlers = 1000
	// connections is the size of each pool.
	connections = 20
	// perCall is how many tasks one call stores, and perCopy how many one COPY
	// stores.
	perCall, perCopy = 500, 5000
	// producers is how many clients store tasks at once.
	producers = 2

	waitingKinds, waitingLevels = 8, 25
)

// payload is 100 bytes of JSON.
type payload struct {
	Text string `json:"text"`
}

var (
	sample = payload{strings.Repeat("x", 89)}
	// encoded is sample as JSON.
	encoded = fmt.Sprintf(`{"text":%q}`, sample.Text)
)

// errHandler is the error of handlers that fail.
var errHandler = errors.New("the handler failed: connection refused by 192.0.2.1:443")

// choose returns the named systems of an engine, or all if there are no names.
func choose(engine string, names []string) (map[string]open, []string, error) {
	chosen, order, known := map[string]open{}, []string{}, []string{}
	for _, s := range systems[engine] {
		known = append(known, s.name)
		pooled := s.name == pooledName || s.name == pgxPooledName
		usual := s.name != meteredName && (!pooled || os.Getenv(poolerVariable) != "")
		if len(names) == 0 && usual || slices.Contains(names, s.name) {
			chosen[s.name], order = s.open, append(order, s.name)
		}
	}
	for _, name := range names {
		if chosen[name] == nil {
			return nil, nil, fmt.Errorf("system %q; those on %s are %s", name, engine, strings.Join(known, ", "))
		}
	}
	return chosen, order, nil
}

// storeParts splits n into parts of at most size, calls store with each part from
// clients goroutines, and returns their errors.
func storeParts(ctx context.Context, n, size, clients int, store func(ctx context.Context, n int) error) error {
	parts := make(chan int, n/size+1)
	for ; n > 0; n -= size {
		parts <- min(n, size)
	}
	close(parts)
	errs := make(chan error, clients)
	for range clients {
		go func() {
			for part := range parts {
				if err := store(ctx, part); err != nil {
					errs <- err
					return
				}
			}
			errs <- nil
		}()
	}
	var all error
	for range clients {
		all = errors.Join(all, <-errs)
	}
	return all
}
