// Package galera makes the command lines of a MariaDB Galera cluster on the loopback
// interface. Its callers run the processes: the program serve, for the tests, and
// the fault suite, which kills nodes and cuts them off.
package galera

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"strings"

	_ "github.com/go-sql-driver/mysql" // driver mysql
)

// Size is the number of nodes of a cluster: the smallest that keeps a majority when
// it loses a node.
const Size = 3

// Packages lists the Debian packages that a cluster needs.
var Packages = []string{"mariadb-server", "galera-4", "rsync", "lsof"}

// ErrMissing is returned where the programs of a cluster are not installed.
var ErrMissing = errors.New("programs of MariaDB Galera are missing; on Debian: apt-get install " + strings.Join(Packages, " "))

// Node is one server of a cluster.
type Node struct {
	Name, Folder string
	// Address is the address for clients.
	Address string
	// Group, IST and SST are the addresses for other nodes: for messages, for
	// transactions that the node missed, and for a copy of all data.
	Group, IST, SST string
	// Members has the Group addresses of all nodes, separated by commas.
	Members string
}

// New returns the nodes of a new cluster. Each has its own folder below folder.
func New(folder string) ([]Node, error) {
	nodes := make([]Node, Size)
	addresses, err := freeAddresses(4 * Size)
	if err != nil {
		return nil, err
	}
	var members []string
	for i := range nodes {
		name := fmt.Sprintf("node%d", i+1)
		at := addresses[4*i:]
		nodes[i] = Node{Name: name, Folder: filepath.Join(folder, name), Address: at[0], Group: at[1], IST: at[2], SST: at[3]}
		members = append(members, at[1])
	}
	for i := range nodes {
		nodes[i].Members = strings.Join(members, ",")
	}
	return nodes, nil
}

// freeAddresses returns n different, unused addresses of the loopback interface.
func freeAddresses(n int) (list []string, err error) {
	if n == 0 {
		return nil, nil
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	defer l.Close() // after all are found, so that none is found twice
	others, err := freeAddresses(n - 1)
	return append(others, l.Addr().String()), err
}

// Commands returns the command lines that create a node's data and run the node.
// The administrator is root, without a password. The first node starts a new
// cluster; all others join it and copy its data.
func (n Node) Commands(first bool) (create, run []string, err error) {
	install, server, provider := find("mariadb-install-db"), find("mariadbd"), find("libgalera_smm.so")
	for _, path := range []string{install, server, provider, find("rsync"), find("lsof")} {
		if path == "" {
			return nil, nil, ErrMissing
		}
	}
	data := filepath.Join(n.Folder, "data")
	create = []string{"mkdir", "-p", data}
	if first {
		create = []string{install, "--no-defaults", "--auth-root-authentication-method=normal", "--skip-test-db", "--datadir=" + data}
	}
	_, port, err := net.SplitHostPort(n.Address)
	if err != nil {
		return nil, nil, err
	}
	_, groupPort, err := net.SplitHostPort(n.Group)
	if err != nil {
		return nil, nil, err
	}
	run = []string{
		server, "--no-defaults", "--datadir=" + data, "--bind-address=127.0.0.1", "--port=" + port, "--tmpdir=" + n.Folder,
		"--socket=" + filepath.Join(n.Folder, "socket"), "--pid-file=" + filepath.Join(n.Folder, "pid"),
		"--max-connections=300", "--skip-log-bin", "--binlog-format=ROW", "--innodb-autoinc-lock-mode=2",
		// The other nodes have what a node loses in a crash. A smaller log is copied faster.
		"--innodb-flush-log-at-trx-commit=0", "--innodb-log-file-size=16M",
		"--wsrep-on=ON", "--wsrep-provider=" + provider, "--wsrep-cluster-name=falldue", "--wsrep-cluster-address=gcomm://" + n.Members,
		// The other nodes apply several transactions concurrently, as in production.
		"--wsrep-slave-threads=4",
		"--wsrep-node-name=" + n.Name, "--wsrep-node-address=" + n.Group,
		"--wsrep-sst-method=rsync", "--wsrep-sst-receive-address=" + n.SST,
		"--wsrep-provider-options=" + strings.Join([]string{
			"base_host=127.0.0.1", "base_port=" + groupPort, "gmcast.listen_addr=tcp://" + n.Group, "ist.recv_addr=" + n.IST,
			"gcache.size=64M",
			// A node that does not answer is excluded after three seconds, not five.
			"evs.keepalive_period=PT0.5S", "evs.suspect_timeout=PT3S", "evs.inactive_timeout=PT9S", "evs.install_timeout=PT5S",
		}, ";"),
	}
	if first {
		run = append(run, "--wsrep-new-cluster")
	}
	return create, run, nil
}

// find returns the path of a program or a library, or "" if there is none.
func find(name string) string {
	for _, pattern := range []string{"/usr/sbin", "/usr/libexec", "/usr/lib/galera*", "/usr/lib64/galera*"} {
		if paths, _ := filepath.Glob(filepath.Join(pattern, name)); len(paths) > 0 {
			return paths[len(paths)-1]
		}
	}
	path, _ := exec.LookPath(name)
	return path
}

// DSN returns the administrator's DSN for the address of a node or of a balancer.
// Its sessions see what was committed before on any node.
func DSN(address string) string {
	return "root@tcp(" + address + ")/mysql?wsrep_sync_wait=15"
}

// State returns the number of nodes that the node sees, itself included. It returns
// an error unless the node has all data and belongs to the majority.
func (n Node) State(ctx context.Context) (size int, err error) {
	var state, status string
	err = n.withDB(func(db *sql.DB) error {
		for variable, value := range map[string]any{"local_state_comment": &state, "cluster_status": &status, "cluster_size": &size} {
			var name string
			if err := db.QueryRowContext(ctx, "show status like 'wsrep_"+variable+"'").Scan(&name, value); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil && (state != "Synced" || status != "Primary") {
		err = fmt.Errorf("%s is %s, %s", n.Name, state, status)
	}
	return size, err
}

// CutOff disconnects a node from the others, or lets it join them again.
func (n Node) CutOff(ctx context.Context, off bool) error {
	isolate := map[bool]string{true: "1", false: "0"}[off]
	return n.withDB(func(db *sql.DB) error {
		_, err := db.ExecContext(ctx, "set global wsrep_provider_options = 'gmcast.isolate="+isolate+"'")
		return err
	})
}

// withDB runs f with a pool on the node, which need not belong to the majority.
func (n Node) withDB(f func(*sql.DB) error) error {
	db, err := sql.Open("mysql", "root@tcp("+n.Address+")/")
	if err != nil {
		return err
	}
	defer db.Close()
	return f(db)
}
