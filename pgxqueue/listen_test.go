package pgxqueue

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/falldue/falldue/internal/testdb"
)

// listening begins to listen on a DSN. It returns what wake is called with, and the error
// of the end.
func listening(ctx context.Context, t *testing.T, dsn string, p pings, renew time.Duration) (notices <-chan string, done <-chan error) {
	t.Helper()
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	config.ConnConfig.OnNotification = func(*pgconn.PgConn, *pgconn.Notification) { t.Error("the application was notified") }
	user := config.ConnConfig.User
	config.ConnConfig.User = "nobody_yet" // as with passwords that are made for each connection
	config.BeforeConnect = func(_ context.Context, c *pgx.ConnConfig) error { c.User = user; return nil }
	woken, ended := make(chan string, 10), make(chan error, 1)
	go func() {
		ended <- listener{config, p, renew}.listen(ctx, "due", func(notice string) { woken <- notice })
	}()
	return woken, ended
}

// within receives from c, and fails the test if nothing comes.
func within[T any](t *testing.T, c <-chan T, what string) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(testdb.Patience):
		t.Fatalf("waited %v for %s", testdb.Patience, what)
	}
	return v
}

// TestSilentConnectionIsFoundOut: the connection stays open and carries nothing. listen
// returns an error, or nothing when its context ends.
func TestSilentConnectionIsFoundOut(t *testing.T) {
	t.Parallel()
	for name, p := range map[string]pings{
		"timeout": {after: time.Millisecond, timeout: time.Second},
		"stopped": {after: time.Millisecond, timeout: time.Hour},
		"idle":    {after: time.Hour, timeout: time.Hour},
	} {
		proxy, dsn := testdb.Through(t, testdb.Postgres, testdb.DSN(t, testdb.Postgres))
		ctx, stop := context.WithCancel(t.Context())
		notices, done := listening(ctx, t, dsn, p, time.Hour)
		within(t, notices, "it to listen")
		proxy.Silence()
		if name != "timeout" {
			stop()
		}
		if err := within(t, done, "it to return"); (err != nil) != (name == "timeout") {
			t.Errorf("%s: it returned %v", name, err)
		}
		stop()
	}
}

// TestListenReturnsWhileTheServerIsSilent: a server that accepts connections and never
// answers does not keep a worker from stopping.
func TestListenReturnsWhileTheServerIsSilent(t *testing.T) {
	t.Parallel()
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = server.Close() }()
	ctx, stop := context.WithCancel(t.Context())
	_, done := listening(ctx, t, "postgres://user@"+server.Addr().String()+"/db?sslmode=disable", defaultPings, time.Hour)
	if c, err := server.Accept(); err == nil {
		defer func() { _ = c.Close() }()
	}
	stop()
	if err := within(t, done, "it to return"); err != nil {
		t.Error(err)
	}
}

// TestNoticesArrive: between pings, and with their texts.
func TestNoticesArrive(t *testing.T) {
	t.Parallel()
	dsn := testdb.DSN(t, testdb.Postgres)
	pool, err := pgxpool.New(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	ctx, stop := context.WithCancel(t.Context())
	notices, done := listening(ctx, t, dsn, pings{after: time.Millisecond, timeout: time.Minute}, time.Hour)
	for _, want := range []string{"", "mails sms", ""} {
		if got := within(t, notices, "a notice"); got != want {
			t.Errorf("a notice is %q, want %q", got, want)
		}
		next := map[string]string{"": "mails sms", "mails sms": ""}[want]
		if _, err := pool.Exec(t.Context(), "select pg_notify('due', $1)", next); err != nil {
			t.Fatal(err)
		}
	}
	stop()
	if err := within(t, done, "it to return"); err != nil {
		t.Error(err)
	}
}

// TestListenEndsWithItsConnection: the worker learns of it, and calls again.
func TestListenEndsWithItsConnection(t *testing.T) {
	t.Parallel()
	dsn := testdb.DSN(t, testdb.Postgres)
	pool, err := pgxpool.New(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	notices, done := listening(t.Context(), t, dsn+"&application_name=listener", defaultPings, time.Hour)
	within(t, notices, "it to listen")
	if _, err := pool.Exec(t.Context(), "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'listener' and datname = current_database()"); err != nil {
		t.Fatal(err)
	}
	if err := within(t, done, "it to return"); err == nil {
		t.Error("it returned no error")
	}
}

// TestListenRenewsItsConnection: a connection that is old makes room for another one, and
// nobody sees a failure.
func TestListenRenewsItsConnection(t *testing.T) {
	t.Parallel()
	dsn := testdb.DSN(t, testdb.Postgres)
	ctx, stop := context.WithCancel(t.Context())
	notices, done := listening(ctx, t, dsn, pings{after: time.Millisecond, timeout: time.Minute}, 10*time.Millisecond)
	for range 3 {
		within(t, notices, "it to listen")
	}
	stop()
	if err := within(t, done, "it to return"); err != nil {
		t.Error(err)
	}
}

// TestListenReturnsErrors: they name what is wrong, and show no passwords.
func TestListenReturnsErrors(t *testing.T) {
	t.Parallel()
	_, done := listening(t.Context(), t, "postgres://user:S3CRET@127.0.0.1:1/db", defaultPings, time.Hour)
	if err := within(t, done, "it to return"); err == nil || !strings.Contains(err.Error(), "connection refused") || strings.Contains(err.Error(), "S3CRET") {
		t.Errorf("error %v, want one that names the address and no password", err)
	}
}

// TestListenBehindAPooler: in transaction mode it accepts LISTEN, and forwards nothing.
func TestListenBehindAPooler(t *testing.T) {
	t.Parallel()
	dsn := testdb.DSN(t, testdb.Postgres)
	pooler := testdb.StartPgBouncer(t, "transaction")
	_, done := listening(t.Context(), t, pooler.Through(dsn)+"&default_query_exec_mode=exec", pings{after: time.Hour, timeout: time.Second}, time.Hour)
	if err := within(t, done, "it to return"); !errors.Is(err, errUnheard) {
		t.Errorf("error %v, want one that says why", err)
	}
}
