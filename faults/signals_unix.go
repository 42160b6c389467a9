//go:build unix

package faults

import (
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"syscall"
)

// pause stops a process by SIGSTOP, and resume lets it continue.
func pause(p *os.Process) error  { return p.Signal(syscall.SIGSTOP) }
func resume(p *os.Process) error { return p.Signal(syscall.SIGCONT) }

// inOwnGroup keeps signals of the terminal away from a command.
func inOwnGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
}

// runAs makes a command run as another user, and gives its folder to that user.
// Server programs refuse to run as root, so root becomes the user that their packages
// created, or else nobody.
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
