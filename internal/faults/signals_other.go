//go:build !unix

package faults

import (
	"errors"
	"os/exec"
)

func (p *Process) pause() error  { return errors.ErrUnsupported }
func (p *Process) resume() error { return errors.ErrUnsupported }

func inOwnGroup(*exec.Cmd) {}

func runAs(*exec.Cmd, string) error { return nil }
