package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"sync/atomic"
	"time"
)

// crewSize is how many worker processes stand beside each other.
const crewSize = 8

// orders are what a process of a crew is told: this program, run again.
type orders struct {
	Engine, DSN string
	// Storm has it enqueue and clean up, too.
	Storm bool
}

// news is what a process of a crew tells, a line of JSON now and then. All are
// since the last.
type news struct {
	Handled  int
	Enqueued int
	Errors   int // that the caller of falldue saw
	// PeakMB is the most memory that the process ever had, told at its end.
	PeakMB float64
}

// serveCrew is the whole of a process of a crew. It works until its input ends.
func serveCrew(ctx context.Context, told string) error {
	var o orders
	if err := json.Unmarshal([]byte(told), &o); err != nil {
		return err
	}
	db := database{server: &server{engine: o.Engine}, dsn: o.DSN}
	done := deleted
	if o.Storm {
		done = briefly
	}
	s, err := openFalldue(tuned)(ctx, db, settings{done: done})
	if err != nil {
		return err
	}
	defer s.close()
	f := s.(*falldueSubject)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	var handled, enqueued, failed atomic.Int64
	stop, err := f.work(context.WithoutCancel(ctx), func() error { handled.Add(1); return nil })
	if err != nil {
		return err
	}
	stormy := make(chan struct{})
	go func() {
		defer close(stormy)
		for o.Storm && ctx.Err() == nil {
			n := 1 + rand.IntN(50)
			if err := f.insert(context.WithoutCancel(ctx), n); err != nil {
				fmt.Fprintln(os.Stderr, err)
				failed.Add(1)
			}
			enqueued.Add(int64(n))
		}
	}()
	out := json.NewEncoder(os.Stdout)
	tell := func(peak float64) error {
		return out.Encode(news{int(handled.Swap(0)), int(enqueued.Swap(0)), int(failed.Swap(0)), peak})
	}
	for ticks := time.NewTicker(25 * time.Millisecond); ctx.Err() == nil; {
		select {
		case <-ticks.C:
		case <-ctx.Done():
		}
		if err := tell(0); err != nil {
			return err // nobody listens any more
		}
	}
	<-stormy
	return errors.Join(stop(), tell(peakMB()))
}

// peakMB is the most memory this process ever had.
func peakMB() float64 {
	var kB float64
	_, _ = fmt.Sscan(field("/proc/self/status", "VmHWM"), &kB) // 0 where there is no such file
	return kB / 1024
}

// crew are processes that work on one database.
type crew struct {
	told   chan news
	hands  []*exec.Cmd
	inputs []io.Closer
	left   int // that have not said that they are gone
}

// hire starts n processes.
func hire(ctx context.Context, n int, o orders) (_ *crew, err error) {
	told, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := &crew{told: make(chan news, 100*n)}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.dismiss(nil))
		}
	}()
	for range n {
		cmd := exec.CommandContext(ctx, program, crewPart, string(told))
		cmd.Stderr = os.Stderr
		in, err := cmd.StdinPipe()
		if err != nil {
			return nil, err
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			return nil, err
		}
		if err := cmd.Start(); err != nil {
			return nil, err
		}
		c.hands, c.inputs, c.left = append(c.hands, cmd), append(c.inputs, in), c.left+1
		go func() {
			for lines := bufio.NewScanner(out); lines.Scan(); {
				var n news
				if json.Unmarshal(lines.Bytes(), &n) == nil {
					c.told <- n
				}
			}
			c.told <- news{Handled: gone}
		}()
	}
	return c, nil
}

// crewPart is the argument that makes this program a process of a crew, and
// gone is told when one has ended.
const (
	crewPart = "crew"
	gone     = -1
)

// dismiss tells the processes to end, waits until they have, and passes on what
// they told meanwhile.
func (c *crew) dismiss(heard func(news)) (err error) {
	for _, in := range c.inputs {
		_ = in.Close()
	}
	for c.left > 0 {
		n := <-c.told
		switch {
		case n.Handled == gone:
			c.left--
		case heard != nil:
			heard(n)
		}
	}
	for _, cmd := range c.hands {
		err = errors.Join(err, cmd.Wait())
	}
	return err
}

// listen passes on what the processes tell until hear says that it is enough, or
// until end, and says whether it was that. No process may end meanwhile.
func (c *crew) listen(end <-chan time.Time, hear func(news) (enough bool)) (late bool, err error) {
	for {
		select {
		case <-end:
			return true, nil
		case n := <-c.told:
			if n.Handled == gone {
				c.left--
				return false, errors.New("a process ended early")
			}
			if hear(n) {
				return false, nil
			}
		}
	}
}

// drainByProcesses measures how fast worker processes beside each other work
// off config.tasks tasks, and how much memory the largest of them took.
func drainByProcesses(n int) func(context.Context, *config, database, subject) (values, error) {
	return func(ctx context.Context, c *config, db database, s subject) (values, error) {
		if !isFalldue(s) {
			return nil, errors.ErrUnsupported
		}
		if err := errors.Join(s.insert(ctx, c.tasks), db.rest(ctx)); err != nil {
			return nil, err
		}
		took, peak, err := drainBy(ctx, c, db, n)
		return values{"": perSecond(c.tasks, took), fmt.Sprintf("memory_mb_%d", n): peak}, err
	}
}

// memoryBesideBacklog measures how much memory a worker takes that works off
// tasks while many others wait.
func memoryBesideBacklog(ctx context.Context, c *config, db database, s subject) (values, error) {
	if !isFalldue(s) {
		return nil, errors.ErrUnsupported
	}
	if err := errors.Join(s.insertWaiting(ctx, c.backlog), s.insert(ctx, c.tasks), db.rest(ctx)); err != nil {
		return nil, err
	}
	_, peak, err := drainBy(ctx, c, db, 1)
	return values{"": peak}, err
}

func isFalldue(s subject) bool {
	f, ok := s.(*falldueSubject)
	return ok && f.name == "falldue"
}

// drainBy has processes work off config.tasks tasks. It returns how long that
// took from the first task to the last.
func drainBy(ctx context.Context, c *config, db database, n int) (took time.Duration, peak float64, err error) {
	hands, err := hire(ctx, n, orders{Engine: db.server.engine, DSN: db.dsn})
	if err != nil {
		return 0, 0, err
	}
	handled := 0
	var begin, end time.Time
	late, err := hands.listen(time.After(c.patience), func(n news) bool {
		if handled == 0 && n.Handled > 0 {
			begin = time.Now()
		}
		handled, peak, end = handled+n.Handled, max(peak, n.PeakMB), time.Now()
		return handled >= c.tasks
	})
	if late {
		err = fmt.Errorf("%d of %d tasks handled in %v", handled, c.tasks, c.patience)
	}
	took = end.Sub(begin)
	err = errors.Join(err, hands.dismiss(func(n news) { peak = max(peak, n.PeakMB) }))
	return took, peak, err
}

// storm counts the deadlocks of processes that enqueue, claim, settle and clean
// at once, and the errors that their callers see.
func storm(ctx context.Context, c *config, db database, s subject) (values, error) {
	if !isFalldue(s) {
		return nil, errors.ErrUnsupported
	}
	before, err := db.deadlocks(ctx)
	if err != nil {
		return nil, err
	}
	hands, err := hire(ctx, crewSize, orders{Engine: db.server.engine, DSN: db.dsn, Storm: true})
	if err != nil {
		return nil, err
	}
	var all news
	hear := func(n news) {
		all.Handled, all.Enqueued, all.Errors = all.Handled+n.Handled, all.Enqueued+n.Enqueued, all.Errors+n.Errors
	}
	_, err = hands.listen(time.After(c.storm), func(n news) bool { hear(n); return false })
	if err := errors.Join(err, hands.dismiss(hear)); err != nil {
		return nil, err
	}
	after, err := db.deadlocks(ctx)
	return values{
		"": float64(after - before), "storm_errors": float64(all.Errors), "storm_handled": perSecond(all.Handled, c.storm), "storm_enqueued": perSecond(all.Enqueued, c.storm),
	}, err
}

// deadlocks counts those that the server has seen so far: on PostgreSQL in this
// database, on MySQL and MariaDB in all, which nobody else may use meanwhile.
func (db database) deadlocks(ctx context.Context) (n int, err error) {
	query := map[string]string{
		postgres: "select deadlocks from pg_stat_database where datname = '" + db.name + "'",
		mySQL:    "select count from information_schema.innodb_metrics where name = 'lock_deadlocks'",
		mariaDB:  "select variable_value from information_schema.global_status where variable_name = 'Innodb_deadlocks'",
	}[db.server.engine]
	err = db.server.admin.GetContext(ctx, &n, query)
	return n, err
}
