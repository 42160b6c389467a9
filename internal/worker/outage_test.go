package worker

import (
	"bytes"
	"context"
	"database/sql"
	"database/sql/driver"
	"log/slog"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jmoiron/sqlx"
	"modernc.org/sqlite"

	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/internal/control"
	"github.com/falldue/falldue/internal/outcome"
	"github.com/falldue/falldue/internal/run"
	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/internal/store"
	"github.com/falldue/falldue/internal/upkeep"
	"github.com/falldue/falldue/migrations"
)

// away is a server that refuses all connections, and counts them.
type away struct{ attempts *atomic.Int64 }

func (a away) Connect(context.Context) (driver.Conn, error) {
	a.attempts.Add(1)
	return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
}

func (away) Driver() driver.Driver { return nil }

// TestAnOutageDoesNotFlood: a worker of five queues, with due tasks and runs to settle, has no server for an
// hour, or its program has closed the database. The worker tries a few times a second at most, and writes one
// line a minute for each cause.
func TestAnOutageDoesNotFlood(t *testing.T) {
	t.Parallel()
	for _, engine := range dialect.Names {
		server, err := dialect.DefaultServer(engine)
		if err != nil {
			t.Fatal(err)
		}
		for _, closed := range []bool{false, true} {
			t.Run(string(engine)+" "+map[bool]string{true: "closed", false: "away"}[closed], func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) { testOutage(t, server, closed) })
			})
		}
	}
}

func testOutage(t *testing.T, server dialect.Server, closed bool) {
	const minutes = 60
	var attempts atomic.Int64
	db := sqlx.NewDb(sql.OpenDB(away{&attempts}), "away")
	defer db.Close()
	if closed {
		_ = db.Close()
	}
	var text bytes.Buffer
	cfg := Config{
		ID: "me", PollInterval: time.Second, Lease: 2 * time.Hour, Log: slog.New(slog.NewTextHandler(&text, nil)), Queues: map[string]Queue{}, Handlers: map[string]*run.Handler{},
		OthersRetention: run.Retention{Done: time.Hour, Dead: time.Hour, Cancelled: time.Hour},
	}
	for i := range 5 {
		name := "queue" + strconv.Itoa(i)
		cfg.Queues[name] = Queue{Concurrency: 10, MaxPrefetch: 1000}
		cfg.Handlers[name] = &run.Handler{Kind: name, Queue: name, Policy: control.Compile(backoff.Zizq()), Limits: []store.Limit{}}
	}
	s := store.New(db, server, store.Options{Tables: dialect.Tables{Prefix: "falldue_"}})
	ctx, stop := context.WithCancel(t.Context())
	w := New(ctx, func() {}, cfg, s, upkeep.NewPolicyStore(s, cfg.Log), noObserver{})
	ended := make(chan struct{})
	go func() { defer close(ended); _ = w.Run() }()
	for name := range cfg.Queues {
		w.pollers.Hint(name, store.Lane{State: statements.StateOpen, Kind: name}, 0)
		r := new(run.Run)
		w.dispatchers[name].Begin(r, &store.Claim{}, control.Compile(backoff.Zizq()), time.Now())
		w.claimed.Add(&r.Lease)
		w.settler.In <- r
	}
	time.Sleep(minutes * time.Minute)
	stop()
	<-ended
	lines := map[string]int{}
	for line := range strings.Lines(text.String()) {
		_, message, _ := strings.Cut(line, "msg=")
		message, _, _ = strings.Cut(message[1:], `"`)
		lines[message]++
	}
	for message, n := range lines {
		if n > minutes+5 { // one for each run is not settled
			t.Errorf("%d lines in %d minutes: %s", n, minutes, message)
		}
	}
	if n := lines["falldue: the database does not answer"]; n < minutes/2 || len(lines) > 5 {
		t.Errorf("the log has %d lines about the database:\n%v", n, lines)
	}
	if n := attempts.Load(); n > 3*minutes*60 || n == 0 && !closed {
		t.Errorf("%d connections were tried in %d minutes", n, minutes)
	}
}

// back is a server that refuses connections until it is up. Then it opens connections to a SQLite
// database.
type back struct {
	up  *atomic.Bool
	dsn string
}

func (b back) Connect(ctx context.Context) (driver.Conn, error) {
	if !b.up.Load() {
		return away{new(atomic.Int64)}.Connect(ctx)
	}
	return new(sqlite.Driver).Open(b.dsn)
}

func (back) Driver() driver.Driver { return nil }

// TestWorkersRecoverFromAnOutage: the server is back after an outage of ten minutes. A task that this
// process has stored starts immediately, as the hint proves that the database answers. A task of another
// process starts after the pause of the first poller that tries.
func TestWorkersRecoverFromAnOutage(t *testing.T) {
	t.Parallel()
	for _, hint := range []bool{true, false} {
		path := "file:" + filepath.Join(t.TempDir(), "back.db")
		synctest.Test(t, func(t *testing.T) {
			at, up := back{new(atomic.Bool), path}, new(atomic.Bool)
			at.up = up
			up.Store(true)
			db := sqlx.NewDb(sql.OpenDB(at), "back")
			defer db.Close()
			db.SetMaxIdleConns(0)
			server, err := dialect.Probe(t.Context(), db)
			if err != nil {
				t.Fatal(err)
			}
			tables := dialect.Tables{Prefix: "falldue_"}
			m, err := migrations.New(db.DB, server, tables)
			if err == nil {
				_, err = m.Up(t.Context())
			}
			if err != nil {
				t.Fatal(err)
			}
			var text bytes.Buffer
			ran := make(chan time.Time, 1)
			cfg := Config{
				ID: "me", PollInterval: time.Second, Lease: time.Minute, Log: slog.New(slog.NewTextHandler(&text, nil)), Queues: map[string]Queue{}, Handlers: map[string]*run.Handler{},
				OthersRetention: run.Retention{Done: run.Forever, Dead: run.Forever, Cancelled: run.Forever},
			}
			for i := range 5 {
				name := "queue" + strconv.Itoa(i)
				cfg.Queues[name] = Queue{Concurrency: 10, MaxPrefetch: 1000}
				cfg.Handlers[name] = &run.Handler{
					Kind: name, Queue: name, Policy: control.Compile(backoff.Zizq()), Retention: cfg.OthersRetention,
					Run: func(context.Context, *run.Run) *outcome.Failure { ran <- time.Now(); return nil },
				}
			}
			s := store.New(db, server, store.Options{Tables: tables})
			ctx, stop := context.WithCancel(t.Context())
			w := New(ctx, func() {}, cfg, s, upkeep.NewPolicyStore(s, cfg.Log), noObserver{})
			ended := make(chan struct{})
			go func() { defer close(ended); _ = w.Run() }()
			up.Store(false)
			time.Sleep(10*time.Minute + 123*time.Millisecond)
			up.Store(true)
			entry := store.Entry{Queue: "queue3", Kind: "queue3", Payload: "1"}
			if _, err := s.Enqueue(ctx, nil, []store.Entry{entry}); err != nil {
				t.Fatal(err)
			}
			began, most := time.Now(), 6*time.Second
			if hint {
				most = 100 * time.Millisecond
				w.Enqueued([]store.Entry{entry})
			}
			if took := (<-ran).Sub(began); took > most {
				t.Errorf("the task started %v after the server was back (hint: %v)", took, hint)
			}
			time.Sleep(10 * time.Second)
			stop()
			<-ended
			if n := strings.Count(text.String(), "the database answers again"); n != 1 {
				t.Errorf("the log says %d times that the database answers again:\n%s", n, text.String())
			}
		})
	}
}
