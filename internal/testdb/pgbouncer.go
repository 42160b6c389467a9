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

// PgBouncer starts a PgBouncer in front of the PostgreSQL of this run and
// returns what turns a DSN of that into one that leads through it. The mode is
// that of its pool: session or transaction. The end of the test stops it.
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
	if os.Geteuid() == 0 { // as whom it refuses to run; it reads the file before it changes
		args = []string{program, "-u", "nobody", config}
	}
	// The kernel closes the standard input when this process ends, however it
	// does, and that ends the program.
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
		_ = cmd.Wait() // the kill fails where the program ended by itself
		if said, _ := os.ReadFile(log.Name()); t.Failed() {
			t.Logf("pgbouncer said at last: %s", said[max(0, len(said)-2000):])
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
		said, _ := os.ReadFile(log.Name())
		t.Fatalf("testdb: pgbouncer: %v\n%s", err, said)
	}
}

// freeAddress returns an address of the loopback interface that nobody listens
// on.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}
