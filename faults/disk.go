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

// disk is a small disk with the data of a run alone, so that it can be filled.
// Closing it removes it with all data.
type disk string

// newDisk mounts a disk on a folder. Its size depends on the length of the run, since
// tasks stay in the database until the end.
func newDisk(folder string, d time.Duration) (disk, error) {
	err := mountMemory(folder, 1<<30+int64(d.Minutes()*100)<<20)
	if err != nil {
		return "", fmt.Errorf("no fault can fill the disk, because no small one can be mounted: %w", err)
	}
	return disk(folder), nil
}

func (d disk) close() {
	if d != "" {
		_ = unmount(string(d)) // the run is over, and an error changes nothing
	}
}

// fill writes until the disk is full.
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

// hasDisk reports whether the run's data is on a disk that can be filled.
func hasDisk(r *Run) bool { return r.db.disk != "" }

// diskFaults are the faults of the disk of a server, or of SQLite.
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

// onDisk reports whether a run's data goes on a small disk. A cluster's does not: it
// would need several.
func onDisk(engine string) bool {
	switch engine {
	case testdb.Postgres, testdb.MySQL, testdb.MariaDB, testdb.SQLite:
		return os.Getenv(testdb.ServerVariable(engine)) == ""
	}
	return false
}
