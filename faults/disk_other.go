//go:build !linux

package faults

import "errors"

func mountMemory(string, int64) error { return errors.ErrUnsupported }
func unmount(string) error            { return errors.ErrUnsupported }
func isFull(error) bool               { return false }
