package faults

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/falldue/falldue/internal/testdb"
)

func hasPooler(r *Run) bool { return r.db.pooler != nil }

// poolerFaults are the faults of the pooler that the processes of a run connect through.
var poolerFaults = []fault{
	{"kill the pooler", hasPooler, onServer(func(ctx context.Context, r *Run, _ *rand.Rand) error {
		return r.db.pooler.restart(ctx, syscall.SIGKILL)
	})},
}

// isolations are the default isolation levels that sessions of processes have.
var isolations = []string{"read uncommitted", "read committed", "repeatable read", "serializable"}

// startPooler starts a PgBouncer in transaction mode in front of the run's own server.
// It has a database for each default isolation level of the sessions behind it.
func (d *database) startPooler(ctx context.Context) error {
	if d.engine != testdb.Postgres || d.own == nil {
		return errors.New("a pooler needs the programs of PostgreSQL: apt-get install postgresql")
	}
	port, err := freePort()
	if err != nil {
		return err
	}
	to, err := url.Parse(d.own.dsn)
	if err != nil {
		return err
	}
	s := &server{engine: d.engine, program: d.own.program, quit: syscall.SIGTERM}
	s.Folder, s.User = filepath.Join(d.own.Folder, "pooler"), "root" // PgBouncer changes the user itself
	s.dsn = fmt.Sprintf("postgres://postgres@127.0.0.1:%s/%s?sslmode=disable", port, isolationName(isolations[0]))
	if err := os.Mkdir(s.Folder, 0o700); err != nil {
		return err
	}
	var text strings.Builder
	text.WriteString("[databases]\n")
	for _, isolation := range isolations {
		fmt.Fprintf(&text, "%s = host=127.0.0.1 port=%s dbname=%s user=postgres connect_query='set default_transaction_isolation to ''%s'''\n",
			isolationName(isolation), to.Port(), d.name, isolation)
	}
	fmt.Fprintf(&text, "[pgbouncer]\nlisten_addr=127.0.0.1\nlisten_port=%s\nunix_socket_dir=\nauth_type=any\npool_mode=transaction\n"+
		"max_client_conn=1000\ndefault_pool_size=25\nserver_round_robin=1\nserver_login_retry=1\n", port)
	config := filepath.Join(s.Folder, "pgbouncer.ini")
	if err := os.WriteFile(config, []byte(text.String()), 0o600); err != nil {
		return err
	}
	if s.Launch, err = testdb.PgBouncerCommand(config); err != nil {
		return err
	}
	d.pooler = s
	if err := s.start(ctx); err != nil {
		return err
	}
	// PgBouncer 1.18, which users without root's rights get on Debian 12, sometimes crashes when a client cancels a statement.
	d.unwatch = s.supervise()
	return nil
}

// isolationName returns the name of the pooler's database whose sessions have a default
// isolation level.
func isolationName(isolation string) string { return strings.ReplaceAll(isolation, " ", "_") }

// throughPooler returns the DSN of a process that connects through the pooler.
func (f *fleet) throughPooler(s *slot, driver, isolation string) (string, error) {
	name, value, _ := strings.Cut(testdb.InOneStep[driver], "=")
	return changed(f.db.engine, f.db.dsn, s.link.address(), isolationName(isolation), map[string]string{name: value})
}
