package faults

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/testdb"
)

// Options are the options of a run of the suite.
type Options struct {
	// Engine is one of testdb's engines.
	Engine string
	// Seed is the seed of everything random. Two runs with one seed still
	// differ in their timing.
	Seed uint64
	// Pooler makes the processes connect through a PgBouncer in transaction mode, in
	// front of a PostgreSQL without a standby.
	Pooler bool
	// Duration is how long faults happen. After it, workers run the rest of the
	// tasks without faults.
	Duration time.Duration
	// Only names the faults to inject. An empty list means all.
	Only []string
	// Program is the path of a program that calls [Play].
	Program string
	// Folder gets histories, logs and data.
	Folder string
	// Log gets a line for each fault.
	Log io.Writer
}

// Run is a run of the suite.
type Run struct {
	Options
	db     *database
	admin  *sqlx.DB // connects to the database directly, not by a link
	queue  *falldue.Queue
	fleet  *fleet
	faults []fault

	done atomic.Int64 // faults
	mu   sync.Mutex   // of Log
}

// Result is the result of a run.
type Result struct {
	Verdict
	Faults int64
}

// Do runs the suite on one engine. It returns [ErrDamaged] if its server has damaged a table.
func Do(ctx context.Context, o Options) (Result, error) {
	r := &Run{Options: o}
	defer r.close()
	if err := r.prepare(ctx); err != nil {
		return Result{}, err
	}
	r.injectAll(ctx)
	if err := r.finish(ctx); err != nil {
		return Result{Faults: r.done.Load()}, err
	}
	history, err := ReadHistories(r.Folder)
	if err != nil {
		return Result{}, err
	}
	table, err := ReadTable(ctx, r.admin, r.queue)
	if err != nil {
		return Result{}, err
	}
	return Result{Checker{MaxAttempts: maxAttempts}.Check(history, table), r.done.Load()}, nil
}

// prepare creates the database and starts the processes.
func (r *Run) prepare(ctx context.Context) (err error) {
	data, err := os.MkdirTemp(r.Folder, "server-")
	if err != nil {
		return err
	}
	var small disk
	if onDisk(r.Engine) {
		if small, err = newDisk(data, r.Duration); err != nil {
			r.say("%v", err)
		}
	}
	if r.db, err = openDatabase(ctx, r.Program, r.Engine, data, r.Pooler); err != nil {
		small.close()
		return err
	}
	if r.db.disk = small; r.db.own == nil && r.Engine != testdb.SQLite {
		r.db.disk = "" // nothing is on it
		small.close()
	}
	role := Role{Name: "checker", Driver: testdb.Drivers(r.Engine)[0], DSN: r.db.dsn, Connections: 8, Lease: lease, Policy: policies[0]}
	if r.admin, r.queue, err = role.open(ctx, nil); err != nil {
		return err
	}
	if err := r.queue.Migrate(ctx); err != nil {
		return err
	}
	if _, err := r.admin.ExecContext(ctx, createEffects); err != nil {
		return err
	}
	if r.faults, err = r.choose(slices.Concat(processFaults, networkFaults, serverFaults, poolerFaults, diskFaults, nodeFaults, vitessFaults, sqlFaults)); err != nil {
		return err
	}
	r.fleet, err = newFleet(r.Program, r.Folder, r.Seed, r.db)
	return err
}

// choose returns the faults that the run can have and [Options] do not leave out.
func (r *Run) choose(all []fault) (chosen []fault, err error) {
	var names []string
	for _, f := range all {
		names = append(names, f.name)
		if (f.on == nil || f.on(r)) && (len(r.Only) == 0 || slices.Contains(r.Only, f.name)) {
			chosen = append(chosen, f)
		}
	}
	for _, name := range r.Only {
		if !slices.Contains(names, name) {
			return nil, fmt.Errorf("fault %q; the faults are %s", name, strings.Join(names, ", "))
		}
	}
	if len(chosen) == 0 {
		return nil, fmt.Errorf("none of the faults %q can be done to %s here", r.Only, r.Engine)
	}
	return chosen, nil
}

// injectAll injects faults, up to two at a time, until the run's Duration has passed.
func (r *Run) injectAll(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, r.Duration)
	defer cancel()
	var both sync.WaitGroup
	for i := range uint64(2) {
		dice := rand.New(rand.NewPCG(r.Seed, 1000+i))
		both.Go(func() {
			for ctx.Err() == nil {
				f := r.faults[dice.IntN(len(r.faults))]
				began := time.Now()
				err := f.do(ctx, r, dice)
				switch {
				case err == nil:
					r.done.Add(1)
					r.say("%s for %v", f.name, time.Since(began).Round(time.Millisecond))
				case !errors.Is(err, errBusy) && ctx.Err() == nil:
					r.say("%s did not work: %v", f.name, err)
				}
				r.wait(ctx, span(dice, time.Second)) // the processes work without faults meanwhile
			}
		})
	}
	both.Wait()
}

// finish lets the workers run the rest of the tasks, and stops all processes.
func (r *Run) finish(ctx context.Context) error {
	ctx, release := untilStalled(ctx, r.Folder)
	defer release()
	if err := r.fleet.alive(); err != nil {
		return err
	}
	if err := r.fleet.stop(ctx, enqueuerPart); err != nil {
		return err
	}
	if !onVitess(r) { // it has no CHECK TABLE
		if err := undamaged(ctx, r.admin, r.Engine); err != nil {
			return err
		}
	}
	if err := errors.Join(pauseSchedules(ctx, r.queue), deleteParked(ctx, r.queue)); err != nil {
		return err
	}
	began := time.Now()
	if err := drained(ctx, r.queue); err != nil {
		r.say("not all ended: %v", err) // the checker finds out which
	}
	r.say("the rest took %v", time.Since(began).Round(time.Millisecond))
	return errors.Join(r.fleet.alive(), r.fleet.stop(ctx, workerPart))
}

// inject injects a fault into a random process of a part that has none yet. A part
// of "" is any part.
func (r *Run) inject(dice *rand.Rand, part string, do func(*slot) error) error {
	s, ok := r.fleet.pick(dice, part)
	if !ok {
		return errBusy
	}
	defer s.mu.Unlock()
	r.say("a fault in %s", s.process.Name)
	return do(s)
}

// wait waits for d, or until ctx ends.
func (r *Run) wait(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// insist undoes a fault, and tries again while another fault prevents that. With a
// fault that is never undone, the rest of the run would test nothing.
func (r *Run) insist(ctx context.Context, undo func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), openTime)
	defer cancel()
	for {
		err := undo(ctx)
		if err == nil || ctx.Err() != nil {
			return err
		}
		r.wait(ctx, 100*time.Millisecond)
	}
}

// onConn calls do with a connection of the admin, and closes the connection after
// it, since it may hold locks.
func (r *Run) onConn(ctx context.Context, do func(context.Context, *sqlx.Conn) error) error {
	conn, err := r.admin.Connx(ctx)
	if err != nil {
		return err
	}
	defer discard(conn)
	return do(ctx, conn)
}

func (r *Run) say(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Fprintf(r.Log, "%s %s: %s\n", time.Now().Format("15:04:05.000"), r.Engine, fmt.Sprintf(format, args...))
}

func (r *Run) close() {
	if r.fleet != nil {
		r.fleet.close()
	}
	if r.admin != nil {
		_ = r.admin.Close()
	}
	if r.db != nil {
		r.db.close(context.Background())
		r.db.disk.close()
	}
}
