//go:build !unix

package main

import (
	"os/exec"
	"syscall"
)

// Systems other than Unix have no process groups to signal and no accounts to
// change. There servers come from a DSN or from Docker.

func inOwnGroup(*exec.Cmd) {}

func signalGroup(cmd *exec.Cmd, _ syscall.Signal) error { return cmd.Process.Kill() }

func changeRoot(*exec.Cmd, string) {}

type account struct{}

func serverAccount(string) (*account, error) { return nil, nil }

func (*account) chown(string) error { return nil }

func (*account) runAs(*exec.Cmd) {}
