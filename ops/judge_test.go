package ops

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// TestThresholds: each judgment is fine up to its threshold, and asks for attention above it.
func TestThresholds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		got  []Finding
		want Level
		text string
	}{
		{clockSkew(5*time.Second, 0), Fine, "the database's clock is 5s ahead of this machine's; the answer took 0s"},
		{clockSkew(5*time.Second+time.Microsecond, 0), Attention, "the database's clock is 5.000001s ahead of this machine's; the answer took 0s"},
		{clockSkew(-5*time.Second, 0), Fine, "the database's clock is 5s behind this machine's; the answer took 0s"},
		{clockSkew(-5*time.Second-time.Microsecond, 0), Attention, "the database's clock is 5.000001s behind this machine's; the answer took 0s"},
		{clockSkew(6*time.Second, time.Second), Fine, "the database's clock is 6s ahead of this machine's; the answer took 1s"},
		{clockSkew(6*time.Second+time.Microsecond, time.Second), Attention, "the database's clock is 6.000001s ahead of this machine's; the answer took 1s"},
		{deadRows(100_000, 10), Fine, "100000 dead rows and 10 live ones in the table of tasks"},
		{deadRows(100_001, 10), Attention, "100001 dead rows and 10 live ones in the table of tasks"},
		{deadRows(200_000, 1_000_000), Fine, "200000 dead rows and 1000000 live ones in the table of tasks"},
		{deadRows(200_001, 1_000_000), Attention, "200001 dead rows and 1000000 live ones in the table of tasks"},
		{freePages(100_000, 100_000), Fine, "100000 of 100000 pages of the file are free"},
		{freePages(100_001, 100_001), Attention, "100001 of 100001 pages of the file are free"},
		{freePages(500_000, 1_000_000), Fine, "500000 of 1000000 pages of the file are free"},
		{freePages(500_001, 1_000_000), Attention, "500001 of 1000000 pages of the file are free"},
		{historyOf(1_000_000), Fine, "InnoDB keeps the history of 1000000 transactions"},
		{historyOf(1_000_001), Attention, "InnoDB keeps the history of 1000001 transactions"},
		{transactionOf(time.Minute, "session 7"), Fine, "no transaction is older than a minute"},
		{transactionOf(time.Minute+time.Millisecond, "session 7"), Attention, "the oldest transaction is 1m0s old: session 7"},
		{keptWAL("standby", 1<<30), Fine, "replication slot standby keeps 1.1 GB of the write-ahead log"},
		{keptWAL("standby", 1<<30+1), Attention, "replication slot standby keeps 1.1 GB of the write-ahead log"},
		{fileWAL(1 << 30), Fine, "the write-ahead log takes 1.1 GB"},
		{fileWAL(1<<30 + 1), Attention, "the write-ahead log takes 1.1 GB"},
		{directoryWAL(10<<30, 1<<30), Fine, "the write-ahead log takes 10.7 GB; max_wal_size is 1.1 GB"},
		{directoryWAL(10<<30+1, 1<<30), Attention, "the write-ahead log takes 10.7 GB; max_wal_size is 1.1 GB"},
		{directoryWAL(30<<30, 10<<30), Fine, "the write-ahead log takes 32.2 GB; max_wal_size is 10.7 GB"},
		{directoryWAL(30<<30+1, 10<<30), Attention, "the write-ahead log takes 32.2 GB; max_wal_size is 10.7 GB"},
		{binaryLogs(3, 100<<30), Fine, "3 binary logs of 107.4 GB"},
		{binaryLogs(1, 100<<30+1), Attention, "1 binary log of 107.4 GB"},
		{otherDelay("the policy of kind mail", errors.New("falldue: the delay n is 1s in Go, but 2s on oracle")), Broken, "the policy of kind mail: the delay n is 1s in Go, but 2s on oracle"},
	} {
		if len(c.got) != 1 || c.got[0].Level != c.want || c.got[0].Text != c.text || (c.got[0].Advice == "") != (c.want == Fine) {
			t.Errorf("%+v, want %v: %s", c.got, c.want, c.text)
		}
	}
}

// TestOverdueAdvice: more workers do not help tasks that free handlers leave alone.
func TestOverdueAdvice(t *testing.T) {
	t.Parallel()
	for advice, h := range map[string]QueueHandlers{
		"run more workers that have a handler of the kind": {},
		"falldue why":       {Running: 1, Concurrency: 2, Workers: []WorkerHandlers{{Running: 1, Concurrency: 2}}},
		"raise Concurrency": {Running: 2, Concurrency: 2, Workers: []WorkerHandlers{{Running: 2, Concurrency: 2}}},
	} {
		if f := overdueTasks(Overdue{Queue: "default", Kind: "ship", Tasks: 1}, h); !strings.Contains(f.Advice, advice) {
			t.Errorf("%+v: %+v, want the advice %q", h, f, advice)
		}
	}
}
