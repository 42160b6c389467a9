package ops

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"

	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/internal/words"
)

const (
	// bytesPerRow is what the indexes take for a task if they are bloated, and bloatedIndexes
	// the size from which that matters. An entry has about a hundred bytes.
	bytesPerRow, bloatedIndexes = 2000, 256 << 20
	// bloatedTable is how much free space in a table matters.
	bloatedTable = 1 << 30
	// largeWAL is the size from which a write-ahead log is large.
	largeWAL = 1 << 30
	// largeDirectory is the size from which all of a server's write-ahead log is large, if it
	// has far more than the server tries to keep to, and largeBinaryLogs the size of binary logs.
	largeDirectory, largeBinaryLogs = 10 << 30, 100 << 30
)

// checkBloat looks for space that rows have left behind.
func (o *Ops) checkBloat(ctx context.Context) ([]Finding, error) {
	indexes, known, err := o.store.Fact(ctx, statements.FactIndexBytes)
	if err != nil {
		return nil, err
	}
	if known {
		rows, _ := strconv.ParseInt(indexes.Detail, 10, 64)
		return indexBloat(indexes.Amount, rows), nil
	}
	free, known, err := o.store.Fact(ctx, statements.FactFreeBytes)
	if err != nil || !known {
		return nil, err
	}
	used, _ := strconv.ParseInt(free.Detail, 10, 64)
	return tableBloat(used, free.Amount), nil
}

func indexBloat(bytes, rows int64) []Finding {
	text := fmt.Sprintf("the indexes of tasks take %s for %s", size(bytes), words.Count(rows, "task"))
	return judge(text, bytes > bloatedIndexes && bytes > bytesPerRow*rows, "the indexes keep the empty pages of deleted tasks: REINDEX TABLE CONCURRENTLY shrinks them")
}

func tableBloat(used, free int64) []Finding {
	text := fmt.Sprintf("the table of tasks uses %s, and has %s of free space", size(used), size(free))
	return judge(text, free > bloatedTable && free > used, "new tasks will use the free space; OPTIMIZE TABLE returns it to the disk, and locks the table for a while")
}

// checkWAL looks at the size of the write-ahead log: what replication slots keep of it and
// all of it, or the file alongside the database's file. On MySQL and MariaDB it looks at the
// binary logs.
func (o *Ops) checkWAL(ctx context.Context) ([]Finding, error) {
	facts := statements.Facts(o.store.Server())
	if _, ok := facts[statements.FactKeptWAL]; ok {
		kept, known, err := o.store.Fact(ctx, statements.FactKeptWAL)
		if err != nil {
			return nil, err
		}
		findings := fine("no replication slot keeps the write-ahead log")
		if known {
			findings = keptWAL(kept.Detail, kept.Amount)
		}
		return append(findings, o.walDirectory(ctx)...), nil
	}
	if _, ok := statements.BinaryLogs(o.store.Server()); ok {
		files, bytes, known, err := o.store.BinaryLogs(ctx)
		if err != nil || !known { // there are none, or this user cannot see them
			return nil, ctx.Err()
		}
		return binaryLogs(files, bytes), nil
	}
	if _, ok := facts[statements.FactFile]; !ok {
		return nil, nil
	}
	file, known, err := o.store.Fact(ctx, statements.FactFile)
	if err != nil || !known || file.Detail == "" {
		return nil, err
	}
	info, err := os.Stat(file.Detail + "-wal")
	if errors.Is(err, fs.ErrNotExist) {
		return fine("the file has no write-ahead log"), nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the size of the write-ahead log: %w", err)
	}
	return fileWAL(info.Size()), nil
}

// walDirectory judges the size of the write-ahead log itself, if this user may see it.
func (o *Ops) walDirectory(ctx context.Context) []Finding {
	if _, may, err := o.store.Fact(ctx, statements.FactReadsWAL); err != nil || !may {
		return nil
	}
	wal, known, err := o.store.Fact(ctx, statements.FactWALBytes)
	if err != nil || !known { // a server may have the function and refuse it
		return nil
	}
	most, _ := strconv.ParseInt(wal.Detail, 10, 64)
	return directoryWAL(wal.Amount, most)
}

func directoryWAL(bytes, most int64) []Finding {
	text := fmt.Sprintf("the write-ahead log takes %s; max_wal_size is %s", size(bytes), size(most))
	return judge(text, bytes > largeDirectory && bytes > 3*most, "check for a replication slot that keeps the log, and that archiving works, before the disk is full")
}

func binaryLogs(files, bytes int64) []Finding {
	text := fmt.Sprintf("%s of %s", words.Count(files, "binary log"), size(bytes))
	return judge(text, bytes > largeBinaryLogs, "check whether a replica lags; binlog_expire_logs_seconds sets how long the logs are kept")
}

func keptWAL(slot string, bytes int64) []Finding {
	text := fmt.Sprintf("replication slot %s keeps %s of the write-ahead log", slot, size(bytes))
	return judge(text, bytes > largeWAL, "check whether its replica runs; if the replica is gone, drop the slot before the disk is full")
}

func fileWAL(bytes int64) []Finding {
	return judge("the write-ahead log takes "+size(bytes), bytes > largeWAL, "long transactions keep the log from shrinking: end them, then run PRAGMA wal_checkpoint(TRUNCATE)")
}

// size formats a number of bytes.
func size(n int64) string {
	units := []string{"bytes", "kB", "MB", "GB", "TB"}
	amount, unit := float64(n), 0
	for amount >= 1000 && unit < len(units)-1 {
		amount, unit = amount/1000, unit+1
	}
	if unit == 0 {
		return fmt.Sprintf("%d bytes", n)
	}
	return fmt.Sprintf("%.1f %s", amount, units[unit])
}
