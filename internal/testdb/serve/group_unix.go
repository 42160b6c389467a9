//go:build unix

package main

import (
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"syscall"

	"github.com/falldue/falldue/internal/testdb"
)

// inOwnGroup makes a command the leader of a new process group, so that a signal
// reaches it and all processes that it starts, and no others.
func inOwnGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
}

// signalGroup sends a signal to the process group of a command.
func signalGroup(cmd *exec.Cmd, signal syscall.Signal) error {
	return syscall.Kill(-cmd.Process.Pid, signal)
}

// changeRoot makes a command take a folder for /, if the folder is not "".
func changeRoot(cmd *exec.Cmd, root string) { cmd.SysProcAttr.Chroot = root }

// account is the user that a server runs as; nil is the current user.
type account struct{ uid, gid uint32 }

// serverAccount returns the account for a server. The programs refuse to run as root,
// so root runs them as the user that the packages have created, or else as an unprivileged user.
// TiDB's program does not refuse, and lies in a cache that only its owner can read.
func serverAccount(engine string) (*account, error) {
	if os.Geteuid() != 0 || engine == testdb.TiDB {
		return nil, nil
	}
	name := "mysql"
	if engine == testdb.Postgres {
		name = "postgres"
	}
	u, err := user.Lookup(name)
	if err != nil {
		u, err = user.Lookup("nobody")
	}
	if err != nil {
		return nil, fmt.Errorf("%s does not run as root, and there is no user to run it as: %w", engine, err)
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return nil, err
	}
	return &account{uint32(uid), uint32(gid)}, nil
}

// chown makes the account the owner of a folder.
func (a *account) chown(dir string) error {
	if a == nil {
		return nil
	}
	return os.Chown(dir, int(a.uid), int(a.gid))
}

// runAs makes a command run as the account.
func (a *account) runAs(cmd *exec.Cmd) {
	if a != nil {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: a.uid, Gid: a.gid}
	}
}
