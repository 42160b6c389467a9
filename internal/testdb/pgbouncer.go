package testdb

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// InOneStep has the setting in the DSN of each driver that makes it send a statement and
// its arguments in one step, as a pooler in transaction mode needs it.
var InOneStep = map[string]string{
	"postgres": "binary_parameters=yes",
	"pgx":      "default_query_exec_mode=exec",
	PgxPool:    "default_query_exec_mode=exec",
}

// PgBouncer is a pooler in front of the PostgreSQL of this run.
type PgBouncer struct {
	address  string
	server   string   // the DSN of PostgreSQL
	args     []string // program and arguments
	log      string
	cmd      *exec.Cmd
	lifeline io.Closer
}

// StartPgBouncer starts a PgBouncer in a pool mode: session or transaction. It is stopped
// when the test ends. In transaction mode a statement or a transaction seldom gets the
// session of the one before. More settings are lines of its configuration.
func StartPgBouncer(t testing.TB, mode string, more ...string) *PgBouncer {
	t.Helper()
	skipUnlessCovered(t, Postgres) // before a server is started, or a program installed
	server, err := Server(Postgres)
	if err != nil {
		t.Fatal(err)
	}
	to, err := postgresURL(server)
	if err != nil {
		t.Fatal(err)
	}
	address, err := freeAddress()
	if err != nil {
		t.Fatal(err)
	}
	host, port, _ := net.SplitHostPort(address)
	login := "user=" + to.User.Username()
	if password, _ := to.User.Password(); password != "" {
		login += " password='" + password + "'"
	}
	config := filepath.Join(t.TempDir(), "pgbouncer.ini")
	text := fmt.Sprintf("[databases]\n* = host=%s port=%s %s\n"+
		"[pgbouncer]\nlisten_addr=%s\nlisten_port=%s\nunix_socket_dir=\nauth_type=any\npool_mode=%s\n"+
		"max_client_conn=1000\ndefault_pool_size=50\nmax_db_connections=100\nserver_idle_timeout=5\nserver_round_robin=1\n%s\n",
		to.Hostname(), to.Port(), login, host, port, mode, strings.Join(more, "\n"))
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	b := &PgBouncer{address: address, server: server, log: config + ".log"}
	if b.args, err = PgBouncerCommand(config); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		b.kill()
		if t.Failed() {
			t.Logf("the end of pgbouncer's log: %s", b.said())
		}
	})
	if err := b.start(); err != nil {
		t.Fatal(err)
	}
	return b
}

// PgBouncerCommand returns the program of PgBouncer and its arguments, with a configuration in a file. It installs
// the program first if the machine has none.
func PgBouncerCommand(config string) ([]string, error) {
	program, err := serve("install", "pgbouncer")
	if err != nil {
		return nil, err
	}
	if os.Geteuid() == 0 { // it refuses to run as root; it reads the file before it changes the user
		return []string{program, "-u", "nobody", config}, nil
	}
	return []string{program, config}, nil
}

// Through returns a DSN of PostgreSQL as one that connects through the pooler.
func (b *PgBouncer) Through(dsn string) string {
	u, err := url.Parse(dsn)
	if err != nil {
		panic(err) // DSN makes URLs
	}
	u.Host = b.address
	return u.String()
}

// Restart kills the pooler, with all connections through it, and starts it again.
func (b *PgBouncer) Restart() error {
	b.kill()
	return b.start()
}

// start starts the program and waits until it answers.
func (b *PgBouncer) start() error {
	// The kernel closes the standard input when this process ends, however it
	// ends, and that ends the program.
	b.cmd = exec.Command("sh", append([]string{"-c", `"$@" & cat >/dev/null; kill -9 $!; wait`, "sh"}, b.args...)...)
	log, err := os.OpenFile(b.log, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	b.cmd.Stdout, b.cmd.Stderr = log, log
	if b.lifeline, err = b.cmd.StdinPipe(); err != nil {
		return err
	}
	if err := b.cmd.Start(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	for {
		_, err := Check(ctx, Postgres, b.Through(b.server))
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("testdb: pgbouncer: %w\n%s", err, b.said())
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (b *PgBouncer) kill() {
	if b.lifeline == nil {
		return
	}
	_ = b.lifeline.Close()
	_ = b.cmd.Wait() // the kill fails if the program has ended by itself
	b.lifeline = nil
}

// said returns the end of the program's log.
func (b *PgBouncer) said() string {
	text, _ := os.ReadFile(b.log)
	return string(text[max(0, len(text)-2000):])
}

// freeAddress returns an unused address of the loopback interface.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}
