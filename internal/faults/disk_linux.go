package faults

import (
	"errors"
	"fmt"
	"syscall"
)

// mountMemory puts a file system of so many bytes on a folder.
func mountMemory(folder string, bytes int64) error {
	err := syscall.Mount("falldue", folder, "tmpfs", syscall.MS_NOSUID|syscall.MS_NODEV, fmt.Sprintf("size=%d,mode=0711", bytes))
	if err != nil {
		return fmt.Errorf("mount (takes root): %w", err)
	}
	return nil
}

// unmount takes it away, even from those that still use it.
func unmount(folder string) error { return syscall.Unmount(folder, syscall.MNT_DETACH) }

func isFull(err error) bool { return errors.Is(err, syscall.ENOSPC) }
