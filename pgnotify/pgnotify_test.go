package pgnotify_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/pgnotify"
)

func TestMain(m *testing.M) { testdb.Main(m) }

// TestCommitWakesWorker checks that a worker that polls once an hour runs a task
// when the transaction of another process commits, and not before, or when that process
// then calls Wake.
func TestCommitWakesWorker(t *testing.T) {
	for name, mode := range map[string]falldue.NotifyMode{"in transactions": falldue.NotifyInTx, "after calls": falldue.NotifyDefault} {
		t.Run(name, func(t *testing.T) { commitWakesWorker(t, mode) })
	}
}

func commitWakesWorker(t *testing.T, mode falldue.NotifyMode) {
	dsn := testdb.DSN(t, testdb.Postgres)
	for _, driver := range testdb.Drivers(testdb.Postgres) {
		db, err := sqlx.Open(driver, dsn)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		listening := make(chan struct{}, 10)
		listen := pgnotify.DSN(dsn)
		worker, err := falldue.New(db, falldue.Config{PollInterval: time.Hour, Notifications: falldue.Notifications{Listen: func(ctx context.Context, channel string, wake func(string)) error {
			return listen(ctx, channel, func(notice string) { wake(notice); listening <- struct{}{} })
		}}})
		if err != nil {
			t.Fatal(err)
		}
		if err := worker.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		kind := falldue.NewKind[int]("notified", falldue.KindConfig{})
		ran := make(chan int, 10)
		falldue.Handle(worker, kind, func(_ context.Context, task falldue.Task[int]) error { ran <- task.Args; return nil })
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- worker.Run(ctx) }()
		<-listening

		other, err := falldue.New(db, falldue.Config{Notifications: falldue.Notifications{Mode: mode}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := kind.Enqueue(t.Context(), other, 1); err != nil {
			t.Fatal(err)
		}
		tx := db.MustBegin()
		if _, err := kind.EnqueueManyTx(t.Context(), other, tx, []int{2, 2}); err != nil {
			t.Fatal(err)
		}
		if got := receive(t, ran); got != 1 {
			t.Errorf("%s: ran %d, want the committed task", driver, got)
		}
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		if mode != falldue.NotifyInTx {
			other.Wake()
		}
		for range 2 {
			if got := receive(t, ran); got != 2 {
				t.Errorf("%s: ran %d, want the task of the transaction", driver, got)
			}
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

func receive[T any](t *testing.T, c <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(testdb.Patience):
		t.Fatal("waited a minute")
	}
	return v
}

func TestOtherEnginesReturnErrInvalid(t *testing.T) {
	db := testdb.Open(t, testdb.SQLite)
	for _, n := range []falldue.Notifications{{Listen: pgnotify.DSN("")}, {Mode: falldue.NotifyInTx}, {Mode: falldue.NotifyAfterCalls}, {Mode: -1}, {Mode: 3}} {
		if _, err := falldue.New(db, falldue.Config{Notifications: n}); !errors.Is(err, falldue.ErrInvalid) {
			t.Errorf("mode %d: error %v, want ErrInvalid", n.Mode, err)
		}
	}
}

// TestNoticesNameTheirQueues also covers Retry, and calls with more queues than a notice
// has room for.
func TestNoticesNameTheirQueues(t *testing.T) {
	dsn := testdb.DSN(t, testdb.Postgres)
	for _, driver := range testdb.Drivers(testdb.Postgres) {
		t.Run(driver, func(t *testing.T) {
			db, err := sqlx.Open(driver, dsn)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = db.Close() }()
			q, err := falldue.New(db, falldue.Config{Notifications: falldue.Notifications{Mode: falldue.NotifyInTx}})
			if err != nil {
				t.Fatal(err)
			}
			if err := q.Migrate(t.Context()); err != nil {
				t.Fatal(err)
			}
			notices, done := make(chan string, 10), make(chan error)
			ctx, cancel := context.WithCancel(t.Context())
			go func() {
				done <- pgnotify.DSN(dsn)(ctx, "falldue_due", func(notice string) { notices <- notice })
			}()
			if got := receive(t, notices); got != "" {
				t.Errorf("the first notice is %q", got)
			}
			kind := falldue.NewKind[int]("k", falldue.KindConfig{Queue: "mails"})
			long := func(i int) falldue.EnqueueOptions {
				return falldue.EnqueueOptions{Queue: fmt.Sprintf("%0100d", i)}
			}
			params := func(n int) (list []falldue.EnqueueParams) {
				for i := range n {
					list = append(list, kind.Params(i, long(i)), kind.Params(i, long(0)))
				}
				return list
			}
			var ids []int64
			for _, c := range []struct {
				want string
				call func() ([]falldue.Receipt, error)
			}{
				{"mails", func() ([]falldue.Receipt, error) { return kind.EnqueueMany(t.Context(), q, []int{1}) }},
				{"mails", func() ([]falldue.Receipt, error) { return kind.EnqueueMany(t.Context(), q, []int{1, 2, 3}) }},
				{"mails", func() ([]falldue.Receipt, error) { return kind.EnqueueMany(t.Context(), q, make([]int, 501)) }},
				{"sms mails", func() ([]falldue.Receipt, error) {
					return q.EnqueueMany(t.Context(), kind.Params(1, falldue.EnqueueOptions{Queue: "sms"}), kind.Params(1), kind.Params(1, falldue.EnqueueOptions{Queue: "sms"}))
				}},
				{long(0).Queue + " " + long(1).Queue, func() ([]falldue.Receipt, error) { return q.EnqueueMany(t.Context(), params(2)...) }},
				{"", func() ([]falldue.Receipt, error) { return q.EnqueueMany(t.Context(), params(80)...) }},
				{"mails", func() ([]falldue.Receipt, error) {
					receipt, err := kind.Enqueue(t.Context(), q, 1)
					ids = append(ids, receipt.ID)
					return nil, err
				}},
				{"mails", func() ([]falldue.Receipt, error) {
					return nil, errors.Join(q.Cancel(t.Context(), ids[0]), q.Retry(t.Context(), ids[0]))
				}},
			} {
				if _, err := c.call(); err != nil {
					t.Fatal(err)
				}
				if got := receive(t, notices); got != c.want {
					t.Errorf("a notice is %q, want %q", got, c.want)
				}
			}
			if err := q.Retry(t.Context(), ids[0]); !errors.Is(err, falldue.ErrWrongState) {
				t.Errorf("Retry of an open task: %v", err)
			}
			cancel()
			if err := <-done; err != nil || len(notices) > 0 {
				t.Errorf("error %v, %d notices left", err, len(notices))
			}
		})
	}
}

// TestListenReturnsErrors: they name what is wrong, and show no secrets.
func TestListenReturnsErrors(t *testing.T) {
	good := testdb.DSN(t, testdb.Postgres)
	with := func(settings string) string {
		if strings.Contains(good, "?") {
			return good + "&" + settings
		}
		return good + "?" + settings
	}
	for _, c := range []struct{ dsn, want string }{
		{"postgres://user:S3CRET@127.0.0.1:1/db", "pgnotify: listen on c: dial tcp 127.0.0.1:1: connect: connection refused"},
		{"host=127.0.0.1 port=1 password='S3CRET S3CRET'", "pgnotify: listen on c: dial tcp 127.0.0.1:1: connect: connection refused"},
		{"postgres://user:pa/S3CRET@127.0.0.1:1/db", "pgnotify: listen on c: parse"},
		{"postgres://user:12/S3CRET@127.0.0.1:1/db", "pgnotify: listen on c: "},
		{"user:S3CRET@tcp(127.0.0.1:1)/db", `missing "="`},
		{strings.Replace(with("wrong_setting=S3CRET"), "postgres@", "postgres:@", 1), `unrecognized configuration parameter "wrong_setting"`},
		{with("channel_binding=require"), `"channel_binding"`},
		{with("connect_timeout=S3CRET"), `"connect_timeout"`},
	} {
		err := pgnotify.DSN(c.dsn)(t.Context(), "c", func(string) { t.Errorf("%s listens", c.dsn) })
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "S3CRET") {
			t.Errorf("%s: error %v, want …%s… without the secret", c.dsn, err, c.want)
		}
	}
}

// TestSettingsOfPgxAreLeftOut: a DSN for pgx's pool works.
func TestSettingsOfPgxAreLeftOut(t *testing.T) {
	good := testdb.DSN(t, testdb.Postgres)
	settings := "pool_max_conns=20&pool_min_conns=1&pool_max_conn_lifetime=1h&default_query_exec_mode=exec&statement_cache_capacity=5&application_name=it's+here"
	u, err := url.Parse(good)
	if err != nil {
		t.Fatal(err)
	}
	password, _ := u.User.Password()
	keywords := fmt.Sprintf("host='%s' port='%s' user='%s' password='%s' dbname='%s' sslmode=disable", u.Hostname(), u.Port(), u.User.Username(), password, u.Path[1:])
	u.RawQuery += "&" + settings
	for _, dsn := range []string{u.String(), keywords + ` pool_max_conns = 20 default_query_exec_mode='simple protocol' application_name='it\'s here'`} {
		ctx, cancel := context.WithCancel(t.Context())
		if err := pgnotify.DSN(dsn)(ctx, "c", func(string) { cancel() }); err != nil || ctx.Err() == nil {
			t.Errorf("%s: error %v", dsn, err)
		}
	}
}

// TestListenEndsWithItsConnection: the worker learns of it, and calls again.
func TestListenEndsWithItsConnection(t *testing.T) {
	dsn := testdb.DSN(t, testdb.Postgres)
	db := sqlx.MustOpen("postgres", dsn)
	defer func() { _ = db.Close() }()
	listening, done := make(chan string, 1), make(chan error)
	go func() {
		done <- pgnotify.DSN(dsn+"&application_name=listener")(t.Context(), "c", func(notice string) { listening <- notice })
	}()
	receive(t, listening)
	if _, err := db.Exec("select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'listener' and datname = current_database()"); err != nil {
		t.Fatal(err)
	}
	if err := receive(t, done); err == nil {
		t.Error("it returned no error")
	}
}

// TestListenReturnsWhileTheServerIsSilent: a server that accepts connections and never
// answers does not keep a worker from stopping.
func TestListenReturnsWhileTheServerIsSilent(t *testing.T) {
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = server.Close() }()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		done <- pgnotify.DSN("postgres://user@"+server.Addr().String()+"/db?sslmode=disable")(ctx, "c", func(string) {})
	}()
	c, err := server.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	cancel()
	if err := receive(t, done); err != nil {
		t.Error(err)
	}
}
