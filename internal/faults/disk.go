package faults

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"github.com/falldue/falldue/internal/testdb"
)

// disk is a small one, on which nothing is but the data of a run, so that it
// can be filled. It is gone with all that is on it when it is closed.
type disk string

// newDisk puts a disk on a folder, for a run of that length: tasks stay in the
// database to its end.
func newDisk(folder string, d time.Duration) (disk, error) {
	err := mountMemory(folder, 1<<30+int64(d.Minutes()*100)<<20)
	if err != nil {
		return "", fmt.Errorf("the disk will not be full, because here is no small one: %w", err)
	}
	return disk(folder), nil
}

func (d disk) close() {
	if d != "" {
		_ = unmount(string(d)) // a run that is over has nothing to say of it
	}
}

// fill fills the disk until nothing more can be written.
func (d disk) fill() error {
	f, err := os.Create(d.filler())
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := io.Copy(f, zeros{}); !isFull(err) {
		return errors.Join(err, d.free())
	}
	return nil
}

func (d disk) free() error    { return os.Remove(d.filler()) }
func (d disk) filler() string { return filepath.Join(string(d), "filler") }

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

// hasDisk tells whether the run's data is on a disk that can be filled.
func hasDisk(r *Run) bool { return r.db.disk != "" }

// diskFaults befall the disk of a server, or SQLite's.
var diskFaults = []fault{
	{"fill the disk", hasDisk, onServer(func(ctx context.Context, r *Run, dice *rand.Rand) error {
		if err := r.db.disk.fill(); err != nil {
			return err
		}
		r.wait(ctx, span(dice, lease*2))
		err := r.db.disk.free()
		for _, s := range []*server{r.db.own, r.db.standby} {
			if s != nil {
				err = errors.Join(err, s.revive(ctx))
			}
		}
		return err
	})},
}

// onDisk tells whether a run's data goes on a small disk: its own, and not that
// of a cluster, which would need several.
func onDisk(engine string) bool {
	switch engine {
	case testdb.Postgres, testdb.MySQL, testdb.MariaDB, testdb.SQLite:
		return os.Getenv(testdb.ServerVariable(engine)) == ""
	}
	return false
}
