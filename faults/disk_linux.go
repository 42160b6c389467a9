package faults

import (
	"errors"
	"fmt"
	"syscall"
)

// mountMemory mounts a file system in memory on a folder, of a size in bytes.
func mountMemory(folder string, bytes int64) error {
	err := syscall.Mount("falldue", folder, "tmpfs", syscall.MS_NOSUID|syscall.MS_NODEV, fmt.Sprintf("size=%d,mode=0711", bytes))
	if err != nil {
		return fmt.Errorf("mount (needs root): %w", err)
	}
	return nil
}

// unmount unmounts a folder, also from processes that still use it.
func unmount(folder string) error { return syscall.Unmount(folder, syscall.MNT_DETACH) }

func isFull(err error) bool { return errors.Is(err, syscall.ENOSPC) }
