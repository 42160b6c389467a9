// Vitess builds and starts a Vitess cluster on the loopback interface, and runs a command with it:
//
//	go run . -- COMMAND…
//
// The command gets what package testdb needs to run the tests of MySQL on it, in FALLDUE_TEST_ENGINES,
// FALLDUE_TEST_MYSQL and FALLDUE_TEST_KEYSPACES; in FALLDUE_TEST_VTCTLDCLIENT the command that changes the
// cluster; and in FALLDUE_TEST_MYSQLDS the process IDs of the MySQL servers of the keyspace main. Without a
// command the program prints these variables and runs the cluster until the standard input ends.
//
// The cluster has etcd, vtctld, vtgate, four MySQL servers, and these keyspaces:
//
//	main          unsharded; a primary and two replicas, each on its own MySQL server, with semi-synchronous replication
//	lent1..lent3  unsharded; a primary each, all on the fourth MySQL server, for tests that need several databases
//	sharded       two shards, on the fourth MySQL server
//
// It runs on Debian, as root: MySQL comes from Debian sid, as for the other tests, and etcd from
// the package etcd-server. All processes run as the user mysql, since Vitess refuses root, and all end with this one.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"os/user"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// servers are Vitess's programs. The first two are large, and their build takes most of the time.
var servers = []string{"vttablet", "vtgate", "vtctld", "vtctldclient"}

// tablet is a vttablet and where its data is.
type tablet struct {
	id                        int
	keyspace, shard, database string
	mysqld                    int // index of the MySQL server
}

var tablets = []tablet{
	{101, "main", "0", "main", 0}, {102, "main", "0", "main", 1}, {103, "main", "0", "main", 2},
	{201, "lent1", "0", "lent1", 3}, {202, "lent2", "0", "lent2", 3}, {203, "lent3", "0", "lent3", 3},
	{301, "sharded", "-80", "sharded_low", 3}, {302, "sharded", "80-", "sharded_high", 3},
}

const cell = "zone1"

func main() {
	// The kernel ends a child when the thread that started it ends, so this thread starts all of them.
	runtime.LockOSThread()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		stop()
		os.Exit(1) //nolint:gocritic // stop has run
	}
}

func run(ctx context.Context, args []string) (err error) {
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	c, err := newCluster(ctx)
	if err != nil {
		return err
	}
	started := false
	defer func() { err = errors.Join(err, c.stop(!started)) }()
	if err := c.start(ctx); err != nil {
		return fmt.Errorf("start Vitess in %s: %w", c.folder, err)
	}
	started = true
	env := []string{
		"FALLDUE_TEST_ENGINES=mysql",
		"FALLDUE_TEST_MYSQL=root@tcp(" + c.mysql + ")/main",
		"FALLDUE_TEST_KEYSPACES=lent1,lent2,lent3",
		"FALLDUE_TEST_VTCTLDCLIENT=" + strings.Join(c.control(), " "),
		fmt.Sprintf("FALLDUE_TEST_MYSQLDS=%d,%d,%d", c.processes[0].Process.Pid, c.processes[1].Process.Pid, c.processes[2].Process.Pid),
	}
	if len(args) == 0 {
		fmt.Println(strings.Join(env, "\n"))
		ended := make(chan error, 1)
		go func() { _, err := io.Copy(io.Discard, os.Stdin); ended <- err }()
		select {
		case err = <-ended:
		case <-ctx.Done():
		}
		return err
	}
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	return cmd.Run()
}

// cluster is a running cluster.
type cluster struct {
	folder     string // of this cluster; programs and logs are in it
	root       string // the Debian that has mysqld
	data       string // the folder of the MySQL servers, as they see it
	uid, gid   uint32
	processes  []*exec.Cmd
	etcd, ctld string // addresses
	mysql      string // address of vtgate, for clients of MySQL
	mysqlds    []string
}

func newCluster(ctx context.Context) (*cluster, error) {
	programs, err := build(ctx)
	if err != nil {
		return nil, err
	}
	account, err := user.Lookup("mysql")
	if err != nil {
		return nil, fmt.Errorf("the cluster runs as the user mysql: %w", err)
	}
	uid, uidErr := strconv.Atoi(account.Uid)
	gid, gidErr := strconv.Atoi(account.Gid)
	if err := errors.Join(uidErr, gidErr); err != nil {
		return nil, err
	}
	script := exec.CommandContext(ctx, "sh", "../serve/debian-root", "sid", "mysql-server-core,libaio1t64")
	script.Stderr = os.Stderr
	root, err := script.Output()
	if err != nil {
		return nil, fmt.Errorf("get mysqld from Debian sid: %w", err)
	}
	c := &cluster{root: strings.TrimSpace(string(root)), uid: uint32(uid), gid: uint32(gid)} //nolint:gosec // IDs of Unix fit
	if c.folder, err = os.MkdirTemp("", "falldue-vitess-"); err != nil {
		return nil, err
	}
	data, err := os.MkdirTemp(filepath.Join(c.root, "tmp"), "falldue-vitess-")
	if err != nil {
		return nil, err
	}
	c.data = strings.TrimPrefix(data, c.root)
	for _, folder := range []string{c.folder, data} {
		if err := os.Chown(folder, uid, gid); err != nil {
			return nil, err
		}
	}
	for _, name := range servers {
		// The user mysql cannot enter the caches of root.
		if err := copyProgram(filepath.Join(programs, name), filepath.Join(c.folder, name)); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// build builds Vitess's programs at the version that go.mod names, and returns their folder.
func build(ctx context.Context) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	version, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Version}}", "vitess.io/vitess").Output()
	if err != nil {
		return "", fmt.Errorf("the version of Vitess: %w", err)
	}
	folder := filepath.Join(cache, "falldue", "vitess-"+strings.TrimSpace(string(version)))
	for _, name := range servers {
		path := filepath.Join(folder, name)
		if _, err := os.Stat(path); err == nil {
			continue
		}
		fmt.Fprintf(os.Stderr, "building %s\n", path)
		cmd := exec.CommandContext(ctx, "go", "build", "-ldflags=-s -w", "-o", path, "vitess.io/vitess/go/cmd/"+name)
		cmd.Stderr = os.Stderr
		if err := cmd.Run(); err != nil {
			return "", fmt.Errorf("build %s: %w", name, err)
		}
	}
	return folder, nil
}

func copyProgram(from, to string) error {
	if os.Link(from, to) == nil {
		return nil
	}
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// start starts everything, and returns when vtgate serves all keyspaces.
func (c *cluster) start(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	for i := range 4 {
		if err := c.startMySQL(ctx, i); err != nil {
			return fmt.Errorf("MySQL %d: %w", i, err)
		}
	}
	peer, err := c.address()
	if err != nil {
		return err
	}
	if c.etcd, err = c.address(); err != nil {
		return err
	}
	err = c.launch("etcd", "", "etcd", "--data-dir", filepath.Join(c.folder, "etcd"), "--listen-client-urls", "http://"+c.etcd,
		"--advertise-client-urls", "http://"+c.etcd, "--listen-peer-urls", "http://"+peer,
		"--initial-advertise-peer-urls", "http://"+peer, "--initial-cluster", "default=http://"+peer, "--unsafe-no-fsync")
	if err = errors.Join(err, await(ctx, healthy("http://"+c.etcd+"/health"))); err != nil {
		return fmt.Errorf("etcd: %w", err)
	}
	page, grpc, err := c.launchVitess("vtctld", "vtctld", "--service-map=grpc-vtctl,grpc-vtctld")
	if err != nil {
		return err
	}
	c.ctld = grpc
	if err := await(ctx, healthy(page)); err != nil {
		return fmt.Errorf("vtctld: %w", err)
	}
	if err := c.do(ctx, "AddCellInfo", "--root=/vitess/"+cell, "--server-address="+c.etcd, cell); err != nil {
		return err
	}
	if err := c.startTablets(ctx); err != nil {
		return err
	}
	if c.mysql, err = c.address(); err != nil {
		return err
	}
	_, port, _ := net.SplitHostPort(c.mysql)
	page, _, err = c.launchVitess("vtgate", "vtgate", "--cell="+cell, "--cells-to-watch="+cell, "--tablet-types-to-wait=PRIMARY",
		"--service-map=grpc-vtgateservice", "--mysql-auth-server-impl=none", "--mysql-server-port="+port,
		"--mysql-server-bind-address=127.0.0.1", "--enable-buffer")
	if err != nil {
		return err
	}
	if err := await(ctx, healthy(page)); err != nil {
		return fmt.Errorf("vtgate: %w", err)
	}
	return await(ctx, func(ctx context.Context) error {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", c.mysql)
		if err != nil {
			return err
		}
		return conn.Close()
	})
}

// startMySQL starts a MySQL server with the users that vttablet has by default, without passwords.
func (c *cluster) startMySQL(ctx context.Context, i int) error {
	address, err := c.address()
	if err != nil {
		return err
	}
	_, port, _ := net.SplitHostPort(address)
	name := "mysqld" + strconv.Itoa(i)
	data := filepath.Join(c.data, name)
	initial := filepath.Join(c.data, name+".sql")
	var users strings.Builder
	for _, name := range []string{"dba", "app", "appdebug", "allprivs", "repl", "filtered", "clone"} {
		fmt.Fprintf(&users, "create user 'vt_%s'@'%%'; grant all on *.* to 'vt_%[1]s'@'%%' with grant option;\n", name)
	}
	if err := os.WriteFile(filepath.Join(c.root, initial), []byte(users.String()), 0o644); err != nil { //nolint:gosec // the server runs as another user
		return err
	}
	create := c.command(c.root, "/usr/sbin/mysqld", "--no-defaults", "--initialize-insecure", "--datadir="+data, "--init-file="+initial)
	if text, err := create.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, text)
	}
	err = c.launch(name, c.root, "/usr/sbin/mysqld", "--no-defaults", "--datadir="+data, "--port="+port, "--bind-address=127.0.0.1",
		"--socket="+data+".socket", "--pid-file="+data+".pid", "--mysqlx=OFF", "--max-connections=500", "--skip-name-resolve",
		"--server-id="+strconv.Itoa(i+1), "--log-bin=binlog", "--gtid-mode=ON", "--enforce-gtid-consistency=ON", "--skip-replica-start",
		"--replica-net-timeout=8", "--innodb-flush-log-at-trx-commit=0", "--sync-binlog=0", "--innodb-flush-method=nosync", "--innodb-doublewrite=0",
		"--performance-schema=OFF", "--secure-file-priv=", "--plugin-load=semisync_source.so;semisync_replica.so")
	if err != nil {
		return err
	}
	c.mysqlds = append(c.mysqlds, port)
	return await(ctx, func(ctx context.Context) error {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
		if err != nil {
			return err
		}
		return conn.Close()
	})
}

func (c *cluster) startTablets(ctx context.Context) error {
	known := map[string]bool{}
	var pages []string
	for _, t := range tablets {
		if !known[t.keyspace] {
			known[t.keyspace] = true
			// Keyspaces share a MySQL server, so each has its own database for Vitess's notes.
			durability := "none"
			if t.keyspace == "main" {
				durability = "semi_sync" // one of two replicas has what is committed
			}
			if err := c.do(ctx, "CreateKeyspace", "--durability-policy="+durability, "--sidecar-db-name=_vt_"+t.keyspace, t.keyspace); err != nil {
				return err
			}
		}
		page, _, err := c.launchVitess(fmt.Sprintf("vttablet%d", t.id), "vttablet", fmt.Sprintf("--tablet-path=%s-%d", cell, t.id), "--tablet-hostname=127.0.0.1",
			"--init-keyspace="+t.keyspace, "--init-shard="+t.shard, "--init-tablet-type=replica", "--init-db-name-override=vt_"+t.database,
			"--db-host=127.0.0.1", "--db-port="+c.mysqlds[t.mysqld], "--service-map=grpc-queryservice,grpc-tabletmanager,grpc-updatestream",
			"--health-check-interval=1s", "--queryserver-config-pool-size=40", "--queryserver-config-transaction-cap=100")
		if err != nil {
			return err
		}
		pages = append(pages, page)
	}
	for _, page := range pages {
		if err := await(ctx, healthy(page)); err != nil {
			return fmt.Errorf("vttablet: %w", err)
		}
	}
	for _, t := range tablets {
		if shard := t.keyspace + "/" + t.shard; !known[shard] {
			known[shard] = true
			if err := c.do(ctx, "PlannedReparentShard", fmt.Sprintf("--new-primary=%s-%d", cell, t.id), "--wait-replicas-timeout=60s", shard); err != nil {
				return err
			}
		}
	}
	return nil
}

// launchVitess launches one of Vitess's servers. It returns the address of its status page, and its address for gRPC.
func (c *cluster) launchVitess(name, program string, args ...string) (page, grpc string, err error) {
	address, err := c.address()
	if err != nil {
		return "", "", err
	}
	if grpc, err = c.address(); err != nil {
		return "", "", err
	}
	_, port, _ := net.SplitHostPort(address)
	_, grpcPort, _ := net.SplitHostPort(grpc)
	args = append(args, "--topo-implementation=etcd2", "--topo-global-server-address="+c.etcd, "--topo-global-root=/vitess/global",
		"--port="+port, "--grpc-port="+grpcPort, "--bind-address=127.0.0.1", "--grpc-bind-address=127.0.0.1")
	return "http://" + address + "/debug/vars", grpc, c.launch(name, "", filepath.Join(c.folder, program), args...)
}

// control returns the command that changes the cluster.
func (c *cluster) control() []string {
	return []string{filepath.Join(c.folder, "vtctldclient"), "--server=" + c.ctld}
}

func (c *cluster) do(ctx context.Context, args ...string) error {
	command := c.command("", c.control()[0], append(c.control()[1:], args...)...)
	text, err := command.CombinedOutput()
	if err != nil {
		return fmt.Errorf("vtctldclient %s: %w: %s", strings.Join(args, " "), cmp.Or(ctx.Err(), err), text)
	}
	return nil
}

// command returns a command that runs as the user mysql and ends with this process.
func (c *cluster) command(root, program string, args ...string) *exec.Cmd {
	cmd := exec.Command(program, args...)
	cmd.Dir = c.folder
	if root != "" {
		cmd.Dir, cmd.Path, cmd.Err = "/", program, nil
	}
	cmd.Env = append(os.Environ(), "VTDATAROOT="+c.folder, "HOME="+c.folder)
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Chroot: root, Credential: &syscall.Credential{Uid: c.uid, Gid: c.gid}, Pdeathsig: syscall.SIGKILL, Setpgid: true,
	}
	return cmd
}

// launch starts a command that runs until the cluster stops, and writes to a log in the cluster's folder.
func (c *cluster) launch(name, root, program string, args ...string) error {
	out, err := os.Create(filepath.Join(c.folder, name+".log"))
	if err != nil {
		return err
	}
	defer out.Close()
	cmd := c.command(root, program, args...)
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		return err
	}
	c.processes = append(c.processes, cmd)
	return nil
}

// stop ends all processes, the last one first. After a failure it leaves the folder with the logs.
func (c *cluster) stop(failed bool) error {
	for i := len(c.processes) - 1; i >= 0; i-- {
		_ = c.processes[i].Process.Kill()
		_ = c.processes[i].Wait()
	}
	err := os.RemoveAll(filepath.Join(c.root, c.data))
	if failed {
		return err
	}
	return errors.Join(err, os.RemoveAll(c.folder))
}

// address returns an unused address of the loopback interface.
func (c *cluster) address() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

func healthy(url string) func(context.Context) error {
	return func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
		if err != nil {
			return err
		}
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		if answer.StatusCode != http.StatusOK {
			return errors.New(answer.Status)
		}
		return nil
	}
}

// await calls f until it returns no error.
func await(ctx context.Context, f func(context.Context) error) error {
	for {
		err := f(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(100 * time.Millisecond):
		}
	}
}
