package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/ops"
)

const (
	// soakRate is how many tasks per second come in a soak, soakBatch in each call.
	soakRate, soakBatch = 1000, 10
	// soakRetention is how long tasks are kept that are done.
	soakRetention = 2 * time.Minute
)

// soakPolicy is the policy of the tasks of a soak. One in twenty attempts fails.
var soakPolicy = backoff.ParseDeferred("delay 5s * n; jitter 5s")

// soakSample is what a soak records each config.every.
type soakSample struct {
	Minute     float64 `json:"minute"`     // since the begin
	Started    int     `json:"started"`    // runs since the sample before
	P50        float64 `json:"p50_ms"`     // from before the enqueue to the start of the first attempt
	P99        float64 `json:"p99_ms"`     //
	TableMB    float64 `json:"table_mb"`   // of all of falldue's tables
	IndexMB    float64 `json:"index_mb"`   //
	Rows       int     `json:"rows"`       // about, as the server says
	DeadRows   int     `json:"dead_rows"`  // row versions that nobody needs, as the server says; none on SQLite
	FreeMB     float64 `json:"free_mb"`    // that deleted rows left in the files of tables; not known on PostgreSQL
	MemoryMB   float64 `json:"memory_mb"`  // of this process
	HeapMB     float64 `json:"heap_mb"`    // of this process, in use
	Goroutines int     `json:"goroutines"` // of this process
	Overdue    int     `json:"overdue"`    // tasks that have been due for more than a minute
}

// soak runs a worker for as long as length says, while tasks come at a steady rate, and
// returns the samples that it takes at intervals.
func soak(ctx context.Context, db database, length, every time.Duration) (samples []soakSample, err error) {
	s, err := openFalldue(tuned)(ctx, db, settings{notify: true, done: keptForMinutes})
	if err != nil {
		return nil, err
	}
	defer s.close()
	f := s.(*falldueSubject)
	kind := falldue.NewKind[time.Time]("soak", falldue.KindConfig{Policy: soakPolicy})
	var mu sync.Mutex
	var waits []time.Duration
	started := 0
	falldue.Handle(f.worker, kind, func(_ context.Context, t falldue.Task[time.Time]) error {
		mu.Lock()
		defer mu.Unlock()
		if started++; t.Attempt == 1 {
			waits = append(waits, time.Since(t.Args))
		}
		if rand.N(20) == 0 {
			return errHandler
		}
		return nil
	})
	stop, err := startWorker(ctx, f.worker.Run)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	enqueuing := make(chan error, 1)
	go func() { enqueuing <- soakEnqueue(ctx, f.producer, kind) }()
	ticks := time.NewTicker(every)
	defer ticks.Stop()
	begin := time.Now()
	last := begin // the time of the last sample
	for len(samples) < int(length/every) {
		select {
		case err := <-enqueuing:
			return samples, err
		case <-ticks.C:
		}
		mu.Lock()
		one := soakSample{Minute: time.Since(begin).Minutes(), Started: started}
		list := waits
		started, waits = 0, nil
		mu.Unlock()
		if len(list) == 0 {
			if silent := time.Since(last); silent > max(every, time.Minute) {
				return samples, fmt.Errorf("no task started for %v", silent)
			}
			continue // the next sample is of a longer time
		}
		last = time.Now()
		slices.Sort(list)
		one.P50, one.P99 = milliseconds(list[len(list)/2]), milliseconds(list[len(list)*99/100])
		if err := one.measure(ctx, f); err != nil {
			return samples, err
		}
		samples = append(samples, one)
		fmt.Fprintf(os.Stderr, "%+v\n", one)
	}
	cancel()
	return samples, <-enqueuing
}

// soakEnqueue stores tasks at a steady rate until ctx ends.
func soakEnqueue(ctx context.Context, q *falldue.Queue, kind falldue.Kind[time.Time]) error {
	return loops(ctx, 2, func(ctx context.Context) error {
		tick := time.NewTicker(2 * soakBatch * time.Second / soakRate)
		defer tick.Stop()
		args := make([]time.Time, soakBatch)
		for {
			select {
			case <-ctx.Done():
				return nil
			case <-tick.C:
			}
			for i := range args {
				args[i] = time.Now()
			}
			if _, err := kind.EnqueueMany(context.WithoutCancel(ctx), q, args); err != nil {
				return err
			}
		}
	})
}

// soakSizes query the sizes of tables and indexes in bytes, the numbers of rows and of dead
// rows, and the bytes that deleted rows left. What InnoDB says of sizes is from its last
// look, which it has by itself after a tenth of the rows has changed.
var soakSizes = map[string]string{
	postgres: `select sum(pg_table_size(relid)), sum(pg_indexes_size(relid)), sum(n_live_tup), sum(n_dead_tup), 0 from pg_stat_user_tables where relname like 'falldue%'`,
	mySQL: `select sum(data_length), sum(index_length), sum(table_rows), (select count from information_schema.innodb_metrics where name = 'trx_rseg_history_len'), sum(data_free)
		from information_schema.tables where table_schema = database() and table_name like 'falldue%'`,
	sqlite: `select page_count * page_size, 0, 0, 0, freelist_count * page_size from pragma_page_count, pragma_page_size, pragma_freelist_count`,
}

// measureSizes fills in what the database says.
func (s *soakSample) measureSizes(ctx context.Context, f *falldueSubject) error {
	conn, err := f.pools[1].Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	if f.engine == mySQL { // or it says for a day what it said first
		if _, err := conn.ExecContext(ctx, "set session information_schema_stats_expiry = 0"); err != nil {
			return err
		}
	}
	query, ok := soakSizes[f.engine]
	if !ok {
		query = soakSizes[mySQL]
	}
	var tables, indexes, rows, dead, free float64
	if err := conn.QueryRowContext(ctx, query).Scan(&tables, &indexes, &rows, &dead, &free); err != nil {
		return err
	}
	if f.engine == sqlite { // it has no statistics
		var names []string
		if err := f.pools[1].SelectContext(ctx, &names, "select name from sqlite_master where type = 'table' and name like 'falldue%'"); err != nil {
			return err
		}
		for _, name := range names {
			var n float64
			if err := conn.QueryRowContext(ctx, "select count(*) from "+name).Scan(&n); err != nil {
				return err
			}
			rows += n
		}
	}
	const mb = 1 << 20
	s.TableMB, s.IndexMB, s.Rows, s.DeadRows, s.FreeMB = tables/mb, indexes/mb, int(rows), int(dead), free/mb
	return nil
}

// measure fills in all but the waits.
func (s *soakSample) measure(ctx context.Context, f *falldueSubject) error {
	if err := s.measureSizes(ctx, f); err != nil {
		return err
	}
	const mb = 1 << 20
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	s.HeapMB, s.Goroutines = float64(memory.HeapAlloc)/mb, runtime.NumGoroutine()
	var kB float64
	if _, err := fmt.Sscan(field("/proc/self/status", "VmRSS"), &kB); err == nil {
		s.MemoryMB = kB / 1024
	}
	overdue, err := ops.New(f.worker).Overdue(ctx, 0)
	for _, o := range overdue {
		s.Overdue += o.Tasks
	}
	return err
}

func milliseconds(d time.Duration) float64 { return d.Seconds() * 1000 }
