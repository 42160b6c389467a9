package testdb

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// PgBouncer starts a PgBouncer in front of the PostgreSQL of this run. It returns a
// function that turns a DSN of PostgreSQL into one that connects through PgBouncer.
// mode is its pool mode: session or transaction. It is stopped when the test ends.
func PgBouncer(t testing.TB, mode string) (through func(dsn string) string) {
	t.Helper()
	server, err := serverOf(Postgres)
	if err != nil {
		t.Fatal(err)
	}
	to, err := postgresURL(server)
	if err != nil {
		t.Fatal(err)
	}
	program, err := serve("install", "pgbouncer")
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
		"max_client_conn=1000\ndefault_pool_size=50\nmax_db_connections=100\nserver_idle_timeout=5\n",
		to.Hostname(), to.Port(), login, host, port, mode)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{program, config}
	if os.Geteuid() == 0 { // it refuses to run as root; it reads the file before it changes the user
		args = []string{program, "-u", "nobody", config}
	}
	// The kernel closes the standard input when this process ends, however it
	// ends, and that ends the program.
	cmd := exec.Command("sh", append([]string{"-c", `"$@" & cat >/dev/null; kill -9 $!`, "sh"}, args...)...)
	log, err := os.Create(config + ".log")
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	lifeline, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = lifeline.Close()
		_ = cmd.Wait() // the kill fails if the program has ended by itself
		if text, _ := os.ReadFile(log.Name()); t.Failed() {
			t.Logf("the end of pgbouncer's log: %s", text[max(0, len(text)-2000):])
		}
	})
	through = func(dsn string) string {
		u, err := url.Parse(dsn)
		if err != nil {
			t.Fatal(err)
		}
		u.Host = address
		return u.String()
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	for {
		_, err := Check(ctx, Postgres, through(server))
		if err == nil {
			return through
		}
		select {
		case <-ctx.Done():
		case <-time.After(50 * time.Millisecond):
			continue
		}
		text, _ := os.ReadFile(log.Name())
		t.Fatalf("testdb: pgbouncer: %v\n%s", err, text)
	}
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
