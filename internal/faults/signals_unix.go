//go:build unix

package faults

import (
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"syscall"
)

// pause makes a process stand still, resume makes it go on.
func pause(p *os.Process) error  { return p.Signal(syscall.SIGSTOP) }
func resume(p *os.Process) error { return p.Signal(syscall.SIGCONT) }

// inOwnGroup keeps the signals of the terminal from a command.
func inOwnGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
}

// runAs makes a command run as another user, and gives the folder that it works
// in to that user. The server programs refuse to run as root, so root becomes
// the one that their packages made for them, or else nobody.
func runAs(cmd *exec.Cmd, name string) error {
	inOwnGroup(cmd)
	if os.Geteuid() != 0 {
		return nil
	}
	u, err := user.Lookup(name)
	if err != nil {
		if u, err = user.Lookup("nobody"); err != nil {
			return err
		}
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return err
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return err
	}
	cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	return os.Chown(cmd.Dir, int(uid), int(gid))
}
