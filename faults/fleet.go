package faults

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/falldue/falldue/internal/testdb"
)

// slot is the place of one worker or enqueuer. When its process is killed, another
// one takes the place, under another name.
type slot struct {
	part string
	name string

	mu         sync.Mutex // held by the fault that it has
	link       *link      // nil for SQLite, which has no connections
	dice       *rand.Rand
	generation int
	process    *Process
	clockJumps bool // whether the clock of its next process jumps
}

// lease is the lease of all workers of a run. It is short, so that many expire.
const lease = 2 * time.Second

// fleet is the processes of a run.
type fleet struct {
	program string
	folder  string
	seed    uint64
	db      *database
	slots   []*slot
}

// newFleet starts the processes of a run.
func newFleet(program, folder string, seed uint64, db *database) (*fleet, error) {
	f := &fleet{program: program, folder: folder, seed: seed, db: db}
	for i, name := range []string{"worker1", "worker2", "worker3", "worker4", "enqueuer1", "enqueuer2"} {
		s := &slot{name: name, part: strings.TrimRight(name, "1234"), dice: rand.New(rand.NewPCG(seed, uint64(i)))}
		f.slots = append(f.slots, s)
		if err := f.fill(s); err != nil {
			return f, err
		}
	}
	return f, nil
}

// fill starts the next process of a slot. It may differ from the one before in its
// driver, in the settings of its sessions and in its policy.
func (f *fleet) fill(s *slot) error {
	s.generation++
	r := Role{
		Name: fmt.Sprintf("%s.%d", s.name, s.generation), Folder: f.folder, Seed: s.dice.Uint64(),
		Handlers: 16, Connections: []int{1, 2, 4, 12}[s.dice.IntN(4)], Lease: lease, Longest: lease * 3 / 2,
		ClockJumps: s.clockJumps, Pooled: f.db.pooler != nil,
		Policy: policies[s.dice.IntN(len(policies))],
		Batch:  10, Pause: 20 * time.Millisecond, Limited: true,
	}
	if s.part == workerPart {
		r.Schedules = 2
	}
	if f.db.engine == testdb.TiDB {
		r.Pause *= 5 // the storage of the TiDB of the tests is slow
	}
	var err error
	if f.db.engine != testdb.SQLite {
		s.link.close()
		if s.link, err = newLink(s.name, f.db.address(s.dice)); err != nil {
			return err
		}
	}
	if r.Driver, r.DSN, err = f.reach(s); err != nil {
		return err
	}
	// A slot that cannot be filled keeps its last process, which has ended.
	next, err := start(f.program, s.part, r)
	if err == nil {
		s.process = next
	}
	return err
}

// replace stops a slot's process, and fills the slot.
func (f *fleet) replace(ctx context.Context, s *slot) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 45*time.Second)
	defer cancel()
	return errors.Join(s.process.stop(ctx), f.fill(s))
}

// reach draws the driver and the DSN of a slot's next process. The DSN sets defaults
// of its sessions: their isolation, and how long a statement may take.
func (f *fleet) reach(s *slot) (driver, dsn string, err error) {
	drivers := testdb.Drivers(f.db.engine)
	driver = drivers[s.dice.IntN(len(drivers))]
	if f.db.engine == testdb.SQLite {
		return driver, f.db.dsn, nil
	}
	isolation := isolations[s.dice.IntN(len(isolations))]
	hurried := s.dice.IntN(4) == 0
	if f.db.pooler != nil {
		dsn, err = f.throughPooler(s, driver, isolation)
		return driver, dsn, err
	}
	settings := map[string]string{}
	switch f.db.engine {
	case testdb.Postgres:
		settings["default_transaction_isolation"] = isolation
		if hurried {
			settings["statement_timeout"] = "300"
		}
		if f.db.addresses != "" && s.dice.IntN(2) == 0 {
			settings["target_session_attrs"] = "read-write"
		}
	case testdb.MySQL:
		settings["transaction_isolation"] = mysqlIsolation(isolation)
		if hurried {
			settings["innodb_lock_wait_timeout"] = "1"
		}
	case testdb.MariaDB, testdb.Galera:
		settings["tx_isolation"] = mysqlIsolation(isolation)
		if hurried {
			settings["innodb_lock_wait_timeout"], settings["max_statement_time"] = "1", "0.3"
		}
	case testdb.TiDB: // it refuses the other two levels
		settings["transaction_isolation"] = mysqlIsolation(isolations[1:3][s.dice.IntN(2)])
		if s.dice.IntN(4) == 0 {
			settings["tidb_txn_mode"] = "'optimistic'"
		}
		if hurried {
			// Claims wait for one another there.
			settings["innodb_lock_wait_timeout"], settings["max_execution_time"] = "1", "2000"
		}
	}
	if f.db.engine == testdb.Galera {
		// A node may not see yet what other nodes have committed.
		settings["wsrep_sync_wait"] = []string{"0", "7"}[s.dice.IntN(2)]
	}
	dsn, err = changed(f.db.engine, f.db.dsn, s.link.address(), "", settings)
	if err == nil && f.db.hasWorker() {
		dsn, err = asWorker(dsn)
	}
	return driver, dsn, err
}

// mysqlIsolation returns an isolation level as a value of MySQL's variable.
func mysqlIsolation(level string) string {
	return "'" + strings.ToUpper(strings.ReplaceAll(level, " ", "-")) + "'"
}

// pick locks a random slot of a part that has no fault.
func (f *fleet) pick(dice *rand.Rand, part string) (*slot, bool) {
	for _, i := range dice.Perm(len(f.slots)) {
		if s := f.slots[i]; (part == "" || s.part == part) && s.mu.TryLock() {
			return s, true
		}
	}
	return nil, false
}

// alive returns an error if a process has ended by itself.
func (f *fleet) alive() error {
	var wrong []error
	for _, s := range f.slots {
		if s.process == nil {
			continue
		}
		select {
		case <-s.process.ended:
			wrong = append(wrong, s.process.wait(context.Background()), fmt.Errorf("%s ended by itself", s.process.Name))
		default:
		}
	}
	return errors.Join(wrong...)
}

// stop asks all processes of a part to end. It kills an enqueuer that hangs.
func (f *fleet) stop(ctx context.Context, part string) error {
	ctx, cancel := context.WithTimeout(ctx, 45*time.Second)
	defer cancel()
	var wrong []error
	for _, s := range f.slots {
		if s.part == part && s.process != nil {
			wrong = append(wrong, s.process.stop(ctx))
			s.process = nil
		}
	}
	return errors.Join(wrong...)
}

// close kills the processes that are left.
func (f *fleet) close() {
	for _, s := range f.slots {
		if s.process != nil {
			s.process.kill()
		}
		s.link.close()
	}
}
