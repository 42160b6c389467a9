package main

import (
	"os"
	"syscall"
)

// memoryNeeded is what the servers of a run and the files of SQLite take at most, in bytes.
const memoryNeeded = 4 << 30

// tempFolder returns the folder for what lives no longer than the tests: one in memory if
// that has room, and else the usual one. The tests create and drop hundreds of databases of
// hundreds of files each. A file system on a disk takes longer for that than the tests
// take, since it looks for numbers of files that were not in use a moment ago.
func tempFolder() string {
	const memory, tmpfs = "/dev/shm", 0x01021994
	var s syscall.Statfs_t
	if err := syscall.Statfs(memory, &s); err != nil || s.Type != tmpfs || float64(s.Bavail)*float64(s.Bsize) < memoryNeeded {
		return os.TempDir()
	}
	return memory
}
