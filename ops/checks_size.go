package ops

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"

	"github.com/falldue/falldue/internal/statements"
)

const (
	// bytesPerRow is what the indexes take for a task if they are bloated, and bloatedIndexes
	// the size from which that matters. An entry has about a hundred bytes.
	bytesPerRow, bloatedIndexes = 2000, 256 << 20
	// bloatedTable is how much free space in a table matters.
	bloatedTable = 1 << 30
	// largeWAL is the size from which a write-ahead log is large.
	largeWAL = 1 << 30
)

// checkBloat looks for space that rows have left behind.
func (i *Inspector) checkBloat(ctx context.Context) ([]Finding, error) {
	indexes, known, err := i.store.Fact(ctx, statements.FactIndexBytes)
	if err != nil {
		return nil, err
	}
	if known {
		rows, _ := strconv.ParseInt(indexes.Detail, 10, 64)
		return indexBloat(indexes.Amount, rows), nil
	}
	free, known, err := i.store.Fact(ctx, statements.FactFreeBytes)
	if err != nil || !known {
		return nil, err
	}
	used, _ := strconv.ParseInt(free.Detail, 10, 64)
	return tableBloat(used, free.Amount), nil
}

func indexBloat(bytes, rows int64) []Finding {
	text := fmt.Sprintf("the indexes of tasks take %s for %s", size(bytes), count(rows, "task"))
	return judge(text, bytes > bloatedIndexes && bytes > bytesPerRow*rows, "many tasks were there once, and the empty pages stay: REINDEX TABLE CONCURRENTLY makes the indexes small")
}

func tableBloat(used, free int64) []Finding {
	text := fmt.Sprintf("the table of tasks takes %s, and %s beside them are free", size(used), size(free))
	return judge(text, free > bloatedTable && free > used, "new tasks use the space; OPTIMIZE TABLE gives it back, and locks the table for a while")
}

// judge returns a finding that is fine, or asks for attention.
func judge(text string, bad bool, advice string) []Finding {
	if bad {
		return []Finding{{Level: Attention, Text: text, Advice: advice}}
	}
	return fine("%s", text)
}

// checkWAL looks at the size of the write-ahead log: what replication slots keep of it, or
// the file beside that of the database.
func (i *Inspector) checkWAL(ctx context.Context) ([]Finding, error) {
	facts := statements.Facts(i.store.Server())
	if _, ok := facts[statements.FactKeptWAL]; ok {
		kept, known, err := i.store.Fact(ctx, statements.FactKeptWAL)
		if err != nil {
			return nil, err
		}
		if !known {
			return fine("no replication slot keeps the write-ahead log"), nil
		}
		return keptWAL(kept.Detail, kept.Amount), nil
	}
	if _, ok := facts[statements.FactFile]; !ok {
		return nil, nil
	}
	file, known, err := i.store.Fact(ctx, statements.FactFile)
	if err != nil || !known || file.Detail == "" {
		return nil, err
	}
	info, err := os.Stat(file.Detail + "-wal")
	if errors.Is(err, fs.ErrNotExist) {
		return fine("the file has no write-ahead log"), nil
	}
	if err != nil {
		return nil, fmt.Errorf("look at the write-ahead log: %w", err)
	}
	return fileWAL(info.Size()), nil
}

func keptWAL(slot string, bytes int64) []Finding {
	text := fmt.Sprintf("replication slot %s keeps %s of the write-ahead log", slot, size(bytes))
	return judge(text, bytes > largeWAL, "look whether its replica runs; if it is gone, drop the slot before the disk is full")
}

func fileWAL(bytes int64) []Finding {
	return judge("the write-ahead log takes "+size(bytes), bytes > largeWAL, "look for a transaction that has been open for long, which keeps it; then PRAGMA wal_checkpoint(TRUNCATE)")
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
