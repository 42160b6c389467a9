// Package store runs the statements of internal/statements. It is the only part of
// falldue that touches the database. It takes and returns plain types: [Lane],
// [Entry], [Claim], [Settlement], [Head]. It knows neither handlers nor workers.
//
// The file exec.go runs the statements, and begins with a table of the ways to do so.
// The other files have one subject each.
package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/internal/statements"
)

// Errors that callers of falldue test for.
var (
	// ErrNotMigrated is wrapped by errors that come from missing tables.
	ErrNotMigrated = errors.New("falldue: the tables are missing or not up to date; call Queue.Migrate, or run \"falldue migrate up\"")
	// ErrNotFound is wrapped by errors of calls for a task that does not exist.
	ErrNotFound = errors.New("falldue: no such task")
)

// Missing is the text of an error about something that does not exist and is not a task. It is an [ErrNotFound].
type Missing string

func (m Missing) Error() string { return string(m) }

// Is makes it an [ErrNotFound].
func (Missing) Is(target error) bool { return target == ErrNotFound }

// errUnencodable explains errors of the class [dialect.Unencodable].
var errUnencodable = errors.New("falldue: a text has characters that the session cannot encode; connect with ?charset=utf8mb4, or to a database with the encoding UTF8")

// MaxBatch is the greatest number of rows of one statement.
const MaxBatch = statements.MaxBatch

// Store runs falldue's statements on a database.
type Store struct {
	db       *sqlx.DB
	server   dialect.Server
	tables   dialect.Tables
	notify   bool // the store's own transactions notify
	notifyTx bool // callers' transactions notify

	tried, answered atomic.Int64 // when a statement was last sent, and when one was last answered; nanoseconds since 1970

	uses atomic.Int64 // of connections

	noCopy  atomic.Bool // the driver or the role cannot COPY
	noSlots atomic.Bool // the server has no named locks
	lookups lookups
	rivals  rivals
	known   knownPermits
	writer  chan struct{} // its one element is held while writing, if Caps.SingleWriter

	participants []participant
	reserve      atomic.Pointer[reserve] // nil unless a worker runs on a limited pool

	mu        sync.Mutex
	refreshed time.Time // when statistics were last refreshed
	discarded time.Time // when idle connections were last discarded
	made      map[stmtKey]statements.Stmt
	delays    map[string]uint32 // numbers of the texts of delays, for stmtKey.formulas
	nextDelay uint32
	conns     map[any]*conn // by the driver's connection
}

// Options are the settings of a Store.
type Options struct {
	// Tables are the names of the tables.
	Tables dialect.Tables
	// Notify makes the store's own transactions notify listeners of enqueued tasks. NotifyTx
	// makes callers' transactions notify the listeners. Both need an engine with Caps.Notify.
	Notify, NotifyTx bool
}

// New returns the store of a database. It does not use db.
func New(db *sqlx.DB, server dialect.Server, o Options) *Store {
	s := &Store{
		db: db, server: server, tables: o.Tables, notify: o.Notify && server.Caps.Notify, notifyTx: o.NotifyTx && server.Caps.Notify, writer: make(chan struct{}, 1),
		made: map[stmtKey]statements.Stmt{}, delays: map[string]uint32{}, conns: map[any]*conn{},
	}
	s.rivals.begin()
	s.known.begin()
	s.participants = []participant{attemptLog{s}, progressLog{s}, stepLog{s}, flowLog{s}}
	return s
}

// Server returns the database's server.
func (s *Store) Server() dialect.Server { return s.server }

// Classify returns the class of an error of the database.
func (s *Store) Classify(err error) dialect.Class {
	if errors.Is(err, errUndone) {
		return dialect.Contention
	}
	return s.server.Classify(err)
}

// Channel returns the channel on which listeners are notified of enqueued tasks.
func (s *Store) Channel() string { return s.tables.Prefix + "due" }

// stmtKey identifies a statement by its name and by all else that its text depends on.
type stmtKey struct {
	name     string
	size     int    // rows of the batch
	formulas string // of a claim: the numbers of its delays, see numbersOf
	inSlot   bool   // a claim takes a claim slot
	plain    bool   // new tasks are plain
	unique   bool   // new tasks have unique keys
	metadata bool   // new tasks have metadata
	notify   bool   // an enqueue notifies
	lock     bool   // rows are locked
	filter   statements.ListParams
	allowed  statements.AllowedParams
}

// maxMade is the greatest number of statements that a store remembers. Each
// combination of policies in a claim is a statement of its own, and tasks may have
// any number of policies.
const maxMade = 2000

// stmt returns the statement of key. On the first call for key, make makes it.
func (s *Store) stmt(key stmtKey, make func() statements.Stmt) statements.Stmt {
	s.mu.Lock()
	defer s.mu.Unlock()
	stmt, ok := s.made[key]
	if !ok {
		if len(s.made) >= maxMade {
			clear(s.made)
		}
		stmt = make()
		s.made[key] = stmt
	}
	return stmt
}

// fixed returns a statement whose text depends only on the server and the tables.
func (s *Store) fixed(name string, make func(dialect.Server, dialect.Tables) statements.Stmt) statements.Stmt {
	return s.stmt(stmtKey{name: name}, func() statements.Stmt { return make(s.server, s.tables) })
}

// batch returns a statement that takes n rows.
func (s *Store) batch(name string, n int, make func(dialect.Server, dialect.Tables, int) statements.Stmt) statements.Stmt {
	size := s.size(n)
	return s.stmt(stmtKey{name: name, size: size}, func() statements.Stmt { return make(s.server, s.tables, size) })
}

// united runs the statement that make makes for the rows of a list, with up to unitedAtOnce rows in each statement.
// For each row of a result it calls f with the place of its element in the list. Before, and when a statement begins
// anew, it calls reset with the place of each element.
func united[R any](ctx context.Context, s *Store, name string, columns statements.Columns[R], list []R, values statements.Values,
	make func(dialect.Server, dialect.Tables, int) statements.Stmt, reset func(int), f func(int, row) error,
) error {
	for first := 0; first < len(list); first += unitedAtOnce {
		part := list[first:min(first+unitedAtOnce, len(list))]
		size := statements.SizeFor(len(part))
		stmt := s.stmt(stmtKey{name: name, size: size}, func() statements.Stmt { return make(s.server, s.tables, size) })
		err := s.readRows(ctx, stmt, values, columns.Rows(len(part), func(i int) *R { return &part[i] }), func() {
			for i := range part {
				reset(first + i)
			}
		}, func(r row) error {
			place, err := r.int(len(r) - 1)
			if err != nil || place < 0 || int(place) >= len(part) { // of the rows that fill a statement up
				return err
			}
			return f(first+int(place), r[:len(r)-1])
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// unitedAtOnce is the number of rows of a statement that has a part for each row.
const unitedAtOnce = 32

// size returns how many rows a statement for n rows takes, or 0 if its text does not
// depend on the number of rows.
func (s *Store) size(n int) int {
	if !s.server.Caps.Rows.Grows() {
		return 0
	}
	return statements.SizeFor(n)
}

// inBatches calls f for consecutive parts of a list, for statements whose every row
// must be used. Where a batch is one parameter, a part has up to MaxBatch rows. Where
// each row has parameters of its own, the parts have one of a few sizes.
func inBatches[T any](s *Store, list []T, f func([]T) error) error {
	return inBatchesOf(s, nil, list, f)
}

// inBatchesOf is inBatches for rows with columns whose texts may be long: a part of more than one
// row has no more than maxBytes of them.
func inBatchesOf[T any](s *Store, columns statements.Columns[T], list []T, f func([]T) error) error {
	for len(list) > 0 {
		n := fitting(s, columns, len(list), func(i int) *T { return &list[i] })
		if s.server.Caps.Rows.Grows() {
			n = statements.SizeFilledBy(n)
		}
		if err := f(list[:n]); err != nil {
			return err
		}
		list = list[n:]
	}
	return nil
}

// maxBytes is the greatest size of the texts in the rows of a statement, unless there is only
// one row. It is a quarter of MariaDB's default of max_allowed_packet: a server ends the session of
// a greater statement, and a driver that writes values into the statement may double them.
const maxBytes = 4 << 20

// CheckSize returns an error if the server would refuse a payload or a result of so many bytes, or would end the session
// of the statement.
func (s *Store) CheckSize(bytes int) error {
	const others = 64 << 10 // the statement and its other values, such as metadata
	packet, row := s.server.Caps.MaxPacket, s.server.Caps.MaxRow
	most, setting, value := max(packet-others, packet/2), "max_allowed_packet", packet
	// A task's payload and its result are in one row: a result that did not fit would run the task again and again.
	if half := (row - others) / 2; row > 0 && (packet == 0 || half < most) {
		most, setting, value = half, "tidb_txn_entry_size_limit", row
	}
	if value > 0 && int64(bytes) > most {
		return fmt.Errorf("%d bytes as stored: must be at most %d, because the server's %s is %d", bytes, most, setting, value)
	}
	return nil
}

// fitting returns how many of some rows, from the first one on, fit into a statement.
func fitting[T any](s *Store, columns statements.Columns[T], rows int, row func(i int) *T) int {
	n, bytes, most := 0, 0, maxBytes
	if packet := s.server.Caps.MaxPacket; packet > 0 {
		most = int(min(maxBytes, packet/4))
	}
	for n < min(rows, MaxBatch) {
		if bytes += columns.Bytes(row(n)); n > 0 && bytes > most {
			break
		}
		n++
	}
	return n
}

// explain wraps errors that users can act on in an error that suggests a fix.
func (s *Store) explain(err error) error {
	if err == nil || errors.Is(err, ErrNotMigrated) || errors.Is(err, errUnencodable) || errors.Is(err, dialect.ErrTransactionPooling) {
		return err // explained already, by a call inside of a transaction
	}
	switch class := s.server.Classify(err); {
	case class == dialect.UndefinedTable, s.server.Caps.AmbiguousMissingTable && class == dialect.Other && !s.hasTables():
		return fmt.Errorf("%w (%w)", ErrNotMigrated, err)
	case class == dialect.PreparedStatementMissing:
		return fmt.Errorf("%w (%w)", dialect.ErrTransactionPooling, err)
	case class == dialect.Unencodable:
		return fmt.Errorf("%w (%w)", errUnencodable, err)
	}
	return err
}

// hasTables reports whether the tables exist, on an engine whose errors do not show
// that they are missing.
func (s *Store) hasTables() bool {
	stmt := s.fixed("count tables", func(server dialect.Server, _ dialect.Tables) statements.Stmt { return statements.CountTables(server) })
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	tables := int64(1)
	err := s.seldom(ctx, stmt, statements.Values{"name": s.tables.Prefix + "tasks"}, nil, func(r row) (err error) {
		tables, err = r.int(0)
		return err
	})
	return err != nil || tables > 0
}

// The types of rows that statements take and return.
type (
	// Lane identifies a group of tasks with equal delay in a queue.
	Lane = statements.Lane
	// Entry is a task to be stored.
	Entry = statements.Entry
	// Key identifies a claim by the task and the fence.
	Key = statements.Key
	// Candidate is a due task that a worker might claim.
	Candidate = statements.Candidate
	// Task is a row of the table of tasks.
	Task = statements.Task
	// Count is the number of tasks of a queue, a kind and a state.
	Count = statements.Count
	// Attempt is a recorded attempt.
	Attempt = statements.Attempt
	// Record is an attempt to be recorded.
	Record = statements.AttemptEntry
)

// SetOf returns a set of ids.
func SetOf(ids []int64) map[int64]bool {
	set := make(map[int64]bool, len(ids))
	for _, id := range ids {
		set[id] = true
	}
	return set
}

// Duration returns a number of microseconds as a duration, limited to the range of
// durations.
func Duration(micros int64) time.Duration {
	const most = int64(1<<63-1) / int64(time.Microsecond)
	return time.Duration(max(min(micros, most), -most)) * time.Microsecond
}

// NotNull returns a value that is not NULL.
func NotNull[T any](v T) sql.Null[T] { return sql.Null[T]{V: v, Valid: true} }

// Time returns a number of microseconds since 1970 as a time in UTC.
func Time(micros int64) time.Time { return time.UnixMicro(micros).UTC() }
