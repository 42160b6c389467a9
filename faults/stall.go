package faults

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// stall is for how long the processes of a run may write no event while they have work. How
// long all the work takes depends on the machine, and has no limit.
const stall = 5 * time.Minute

// untilStalled returns a context that ends with ctx, or when no history in folder has grown for
// as long as stall. The caller calls the function when its processes have ended.
func untilStalled(ctx context.Context, folder string) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		look := time.NewTicker(time.Second)
		defer look.Stop()
		size, grown := int64(0), time.Now()
		for {
			now, err := sizeOfHistories(folder)
			switch {
			case err != nil:
				cancel(err)
			case now != size:
				size, grown = now, time.Now()
			case time.Since(grown) > stall:
				cancel(fmt.Errorf("no process has written an event for %v", stall))
			}
			select {
			case <-ctx.Done():
				return
			case <-look.C:
			}
		}
	}()
	return ctx, func() { cancel(nil); <-ended }
}

// sizeOfHistories returns how many bytes the histories in a folder have.
func sizeOfHistories(folder string) (size int64, err error) {
	paths, err := filepath.Glob(filepath.Join(folder, "*"+historySuffix))
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			return 0, err
		}
		size += info.Size()
	}
	return size, err
}
