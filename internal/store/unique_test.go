package store

import (
	"context"
	"database/sql"
	"encoding/base64"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/internal/testdb"
)

// holding has the task that holds each of some unique keys.
type holding struct {
	t    *testing.T
	ids  []atomic.Int64
	took atomic.Int64
}

// TestUniqueEnqueueForgetsATransactionThatFailed: a commit can fail after the statement has returned the stored task, as
// with default_transaction_isolation=serializable. Another enqueue takes the key before the next try. It does so in most
// tries of the test, and in the others it comes after the next try.
func TestUniqueEnqueueForgetsATransactionThatFailed(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, engine string) {
		db := testdb.Open(t, engine)
		s := migrated(t, db)
		if !statements.StoresUnique(s.server) {
			return // it stores unique tasks in a transaction that is repeated as a whole
		}
		// The first commit waits for the test, and fails as one of two serializable transactions does.
		db.MustExec("create sequence commits")
		db.MustExec(`create function fail() returns trigger language plpgsql as $$
begin
	if nextval('commits') = 1 then
		perform pg_advisory_xact_lock(4711);
		raise exception 'could not serialize access' using errcode = '40001';
	end if;
	return null;
end$$`)
		db.MustExec("create constraint trigger fail after insert on falldue_tasks deferrable initially deferred for each row execute function fail()")
		gate, err := db.Connx(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer gate.Close()
		ctx, cancel := context.WithTimeout(t.Context(), testdb.Patience)
		defer cancel()
		// waiting waits until n sessions wait for a lock.
		waiting := func(n int) {
			t.Helper()
			for got := 0; got != n; {
				if err := db.GetContext(ctx, &got, "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"); err != nil {
					t.Fatal(err)
				}
			}
		}
		type result struct {
			Receipt
			err error
		}
		enqueue := func(key int) chan result {
			done := make(chan result, 1)
			go func() {
				receipts, err := s.EnqueueUnique(t.Context(), nil, []Entry{{Queue: "default", Kind: "k", Payload: "{}", Unique: hashOf(key)}}, []Unique{{}})
				if err != nil {
					done <- result{err: err}
					return
				}
				done <- result{receipts[0], nil}
			}()
			return done
		}
		const tries = 20
		for key := range tries {
			db.MustExec("alter sequence commits restart")
			if _, err := gate.ExecContext(t.Context(), "select pg_advisory_lock(4711)"); err != nil {
				t.Fatal(err)
			}
			first := enqueue(key)
			waiting(1)
			second := enqueue(key)
			waiting(2)
			if _, err := gate.ExecContext(t.Context(), "select pg_advisory_unlock(4711)"); err != nil {
				t.Fatal(err)
			}
			a, b := <-first, <-second
			if a.err != nil || b.err != nil || a.ID != b.ID || a.Existed == b.Existed {
				t.Fatalf("the enqueue whose commit failed returned %+v, and the one after it %+v", a, b)
			}
			if a.Existed {
				return
			}
		}
		t.Errorf("the enqueue whose commit failed was first in %d tries", tries)
	})
}

// begin notes that a task holds a key. The test fails if another task holds the key at that moment.
func (h *holding) begin(key int, id int64) {
	h.took.Add(1)
	if !h.ids[key].CompareAndSwap(0, id) {
		h.t.Errorf("tasks %d and %d hold key %d at once", h.ids[key].Load(), id, key)
	}
}

// end notes that a task is about to end.
func (h *holding) end(key int) { h.ids[key].Store(0) }

// uniqueEnqueuer enqueues, cancels and retries unique tasks at random.
type uniqueEnqueuer struct {
	s       *Store
	keys    *holding
	dice    *rand.Rand
	live    map[int]int64 // the holders that it may cancel, by key
	retired map[int]int64 // the tasks that it has cancelled
}

// enqueue enqueues unique tasks in one of two ways.
func (e *uniqueEnqueuer) enqueue(ctx context.Context, keys []int, scope UniqueScope) error {
	entries, uniques := make([]Entry, len(keys)), make([]Unique, len(keys))
	for i, key := range keys {
		entries[i] = Entry{Queue: "default", Kind: "k", Payload: strconv.Itoa(key), Unique: hashOf(key)}
		uniques[i].Scope = scope
	}
	receipts, err := []Receipt(nil), error(nil)
	if e.dice.IntN(3) == 0 {
		if receipts, err = e.inTransaction(ctx, entries, uniques); err != nil {
			return nil //nolint:nilerr // the isolation level of the caller's transaction allows that
		}
	} else if receipts, err = e.s.EnqueueUnique(ctx, nil, entries, uniques); err != nil {
		return err
	}
	for i, r := range receipts {
		if !r.Existed {
			e.keys.begin(keys[i], r.ID)
			e.live[keys[i]] = r.ID
		}
	}
	return nil
}

func (e *uniqueEnqueuer) inTransaction(ctx context.Context, entries []Entry, uniques []Unique) ([]Receipt, error) {
	tx, err := e.s.db.BeginTxx(ctx, nil)
	if err != nil {
		return nil, err
	}
	defer func() { _ = tx.Rollback() }()
	receipts, err := e.s.EnqueueUnique(ctx, tx, entries, uniques)
	if err != nil {
		return nil, err
	}
	return receipts, tx.Commit()
}

// step does something at random.
func (e *uniqueEnqueuer) step(ctx context.Context) error {
	switch n := e.dice.IntN(10); {
	case n == 0:
		for after, more := "", true; more; more = after != "" {
			var err error
			if after, _, err = e.s.DropKeys(ctx, after, 0); err != nil {
				return err
			}
		}
	case n <= 2:
		for key, id := range e.live {
			e.keys.end(key)
			if _, err := e.s.Act(ctx, ActParams{Action: ActCancel, IDs: []int64{id}, Wait: true}); err != nil {
				e.keys.begin(key, id) // it is not cancelled
				return err
			}
			delete(e.live, key)
			e.retired[key] = id
			return nil
		}
	case n == 3:
		keys, p := map[int64]int{}, ActParams{Action: ActRetry, Wait: true}
		for key, id := range e.retired {
			delete(e.retired, key)
			keys[id], p.IDs = key, append(p.IDs, id)
			if len(p.IDs) == 3 {
				break
			}
		}
		acted, err := e.s.Act(ctx, p)
		for _, id := range acted.Done {
			e.keys.begin(keys[id], id)
			e.live[keys[id]] = id
		}
		if err == nil && len(acted.Done)+len(acted.Exists) != len(p.IDs) {
			err = fmt.Errorf("of %d tasks %d are retried, and the keys of %d are taken", len(p.IDs), len(acted.Done), len(acted.Exists))
		}
		return err
	default:
		first := e.dice.IntN(len(e.keys.ids))
		keys := []int{first}
		for n == 9 && len(keys) < 3 {
			keys = append(keys, (keys[len(keys)-1]+7)%len(e.keys.ids))
		}
		return e.enqueue(ctx, keys, UniqueScope(e.dice.IntN(2))) // nothing is claimed, so that both are alike
	}
	return nil
}

func hashOf(key int) string {
	return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "%032d", key))
}

// TestNeverTwoHolders: many processes enqueue unique tasks with few keys concurrently, by themselves and in
// transactions, while tasks are cancelled and retried, and keys without a holder are deleted.
// FALLDUE_TEST_UNIQUE is the number of steps of each.
func TestNeverTwoHolders(t *testing.T) {
	t.Parallel()
	steps := 300
	if text := os.Getenv("FALLDUE_TEST_UNIQUE"); text != "" {
		var err error
		if steps, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	testdb.Each(t, func(t *testing.T, engine string) {
		const enqueuers, keys = 8, 100
		held := &holding{t: t, ids: make([]atomic.Int64, keys)}
		var all sync.WaitGroup
		for i, s := range stores(t, engine, enqueuers) {
			e := &uniqueEnqueuer{s: s, keys: held, dice: rand.New(rand.NewPCG(uint64(i), 1)), live: map[int]int64{}, retired: map[int]int64{}}
			all.Go(func() {
				for range steps {
					if err := e.step(t.Context()); err != nil && s.server.Classify(err) != dialect.Contention {
						t.Error(err)
						return
					}
				}
			})
		}
		all.Wait()
		t.Logf("%d times a task took a key", held.took.Load())
		if held.took.Load() == 0 {
			t.Error("nobody took a key")
		}
	})
}

// TestKeysThatNobodyHoldsAreDropped: the rows of other keys stay.
func TestKeysThatNobodyHoldsAreDropped(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, engine string) {
		s := stores(t, engine, 1)[0]
		enqueue := func(key int, u Unique) int64 {
			t.Helper()
			r, err := s.EnqueueUnique(t.Context(), nil, []Entry{{Queue: "default", Kind: "k", Payload: "{}", Unique: hashOf(key)}}, []Unique{u})
			if err != nil || r[0].Existed {
				t.Fatal(r, err)
			}
			return r[0].ID
		}
		drop := func(keep time.Duration, want ...int) {
			t.Helper()
			if last, _, err := s.DropKeys(t.Context(), "", keep); err != nil || last != "" {
				t.Fatal(last, err)
			}
			e := s.newUniqueEnqueue(unprepared{s.db}, nil, nil)
			for key := range 4 {
				e.entries, e.left = append(e.entries, Entry{Unique: hashOf(key)}), append(e.left, key)
			}
			found, err := e.holders(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			var left []int
			for key := range 4 {
				if _, ok := found[hashOf(key)]; ok {
					left = append(left, key)
				}
			}
			if !slices.Equal(left, want) {
				t.Errorf("the keys %v are left, want %v", left, want)
			}
		}
		enqueue(0, Unique{})
		cancelled := []int64{enqueue(1, Unique{}), enqueue(2, Unique{Scope: UniqueFor, For: time.Hour})}
		if acted, err := s.Act(t.Context(), ActParams{Action: ActCancel, IDs: cancelled}); err != nil || len(acted.Done) != len(cancelled) {
			t.Fatalf("cancelled %+v, error %v", acted, err)
		}
		enqueue(3, Unique{Scope: UniqueFor, For: time.Millisecond})
		drop(time.Hour, 0, 1, 2, 3)
		drop(0, 0, 2, 3)
		again := enqueue(1, Unique{})
		acted, err := s.Act(t.Context(), ActParams{Action: ActRetry, IDs: cancelled[:1]})
		if exists := acted.Exists[cancelled[0]]; err != nil || len(acted.Done) != 0 || exists == nil || exists.ID != again {
			t.Errorf("retry of task %d while task %d has its key, whose row is new: %+v, error %v", cancelled[0], again, acted, err)
		}
	})
}

// betweenStatements is a caller's transaction in which something happens before its second
// statement.
type betweenStatements struct {
	*sqlx.Tx
	statements int
	happens    func()
}

func (b *betweenStatements) next() {
	if b.statements++; b.statements == 2 {
		b.happens()
	}
}

func (b *betweenStatements) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	b.next()
	return b.Tx.QueryContext(ctx, query, args...)
}

func (b *betweenStatements) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	b.next()
	return b.Tx.ExecContext(ctx, query, args...)
}

// TestEnqueueThatFailsReplacesNothing: a failed enqueue replaces nothing, even if it fails because a key is
// taken after it was found free. The caller's transaction may continue.
func TestEnqueueThatFailsReplacesNothing(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, engine string) {
		db := testdb.Open(t, engine)
		s := migrated(t, db)
		if s.server.Caps.SingleWriter {
			t.Skip("a transaction that writes is alone")
		}
		entry := func(key int, payload string) Entry {
			return Entry{Queue: "default", Kind: "k", Payload: payload, Unique: hashOf(key)}
		}
		enqueue := func(tx Tx, list []Entry, uniques ...Unique) ([]Receipt, error) {
			return s.EnqueueUnique(t.Context(), tx, list, uniques)
		}
		waits, err := enqueue(nil, []Entry{entry(1, `"waits"`)}, Unique{})
		if err != nil {
			t.Fatal(err)
		}
		tx := &betweenStatements{Tx: begin(t, db), happens: func() {
			if r, err := enqueue(nil, []Entry{entry(2, `"first"`)}, Unique{}); err != nil || r[0].Existed {
				t.Errorf("got %+v, error %v", r, err)
			}
		}}
		r, err := enqueue(tx, []Entry{entry(1, `"other"`), entry(2, `"second"`)}, Unique{Conflict: ConflictReplace}, Unique{Conflict: ConflictFail})
		if _, exists := errors.AsType[*ExistsError](err); !exists {
			t.Errorf("got %+v, error %v, want one that says that a task exists", r, err)
		}
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		list, err := s.list(t.Context(), statements.ListParams{}, statements.Values{"after": int64(0), "limit": 10})
		if err != nil || len(list) != 2 || list[0].ID != waits[0].ID || string(list[0].Payload) != `"waits"` || string(list[1].Payload) != `"first"` {
			t.Errorf("listed %+v, error %v", list, err)
		}
	})
}
