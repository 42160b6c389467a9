//go:build unix

package faults

import (
	"os"
	"os/user"
	"strconv"
	"syscall"
)

// pause makes a process stand still, resume makes it go on.
func (p *Process) pause() error  { return p.cmd.Process.Signal(syscall.SIGSTOP) }
func (p *Process) resume() error { return p.cmd.Process.Signal(syscall.SIGCONT) }

// accountOf returns the account for a server. The programs refuse to run as
// root, so root becomes the user that the packages made for them, or nobody.
func accountOf(name string) (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	u, err := user.Lookup(name)
	if err != nil {
		if u, err = user.Lookup("nobody"); err != nil {
			return nil, err
		}
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return nil, err
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
}

// attributes are those of a server's process: an interrupt from the terminal is
// for the run alone, which ends the server by itself.
func attributes(account *syscall.Credential) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Credential: account}
}
