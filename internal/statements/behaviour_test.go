package statements_test

import (
	"database/sql"
	"database/sql/driver"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jmoiron/sqlx"

	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/sqlgen"
)

// queryer is a database or a transaction.
type queryer interface {
	sqlx.ExecerContext
	sqlx.QueryerContext
}

// read runs a statement and scans the rows of its result.
func read[T any](t *testing.T, db queryer, columns statements.Columns[T], stmt statements.Stmt, values statements.Values, rows []statements.Row) (got []T) {
	t.Helper()
	found, err := db.QueryxContext(t.Context(), stmt.SQL, stmt.Bind(values, rows)...)
	if err != nil {
		t.Fatalf("%v\n%s", err, stmt.SQL)
	}
	defer func() { _ = found.Close() }()
	for found.Next() {
		cells, err := found.SliceScan()
		if err != nil {
			t.Fatal(err)
		}
		row := make([]driver.Value, len(cells))
		for i, cell := range cells {
			row[i] = cell
		}
		var one T
		if err := columns.Scan(row, &one); err != nil {
			t.Fatalf("%v\n%s", err, stmt.SQL)
		}
		got = append(got, one)
	}
	if err := found.Err(); err != nil {
		t.Fatalf("%v\n%s", err, stmt.SQL)
	}
	return got
}

// idColumns are the columns of a statement that returns ids.
var idColumns = statements.IDColumns

// change runs an UPDATE or DELETE and returns how many tasks it matched.
func change(t *testing.T, db queryer, s dialect.Server, stmt statements.Stmt, values statements.Values, rows []statements.Row) int {
	t.Helper()
	if s.Caps.UpdateReturning {
		return len(read(t, db, idColumns, stmt, values, rows))
	}
	return exec(t, db, stmt, values, rows)
}

func exec(t *testing.T, db queryer, stmt statements.Stmt, values statements.Values, rows []statements.Row) int {
	t.Helper()
	res, err := db.ExecContext(t.Context(), stmt.SQL, stmt.Bind(values, rows)...)
	if err != nil {
		t.Fatalf("%v\n%s", err, stmt.SQL)
	}
	n, err := res.RowsAffected()
	if err != nil {
		t.Fatal(err)
	}
	return int(n)
}

// store inserts tasks.
func store(t *testing.T, db queryer, s dialect.Server, entries ...statements.Entry) {
	t.Helper()
	rows := statements.EnqueueColumns.Rows(len(entries), func(i int) *statements.Entry { return &entries[i] })
	exec(t, db, statements.Enqueue(s, statements.EnqueueParams{Tables: tables}, len(rows)), nil, rows)
}

// claim claims as a worker does: with one statement where the server has it, and
// otherwise lane by lane and then by compare-and-set. Each lane has the delay.
func claim(t *testing.T, db queryer, s dialect.Server, worker string, limit int, delay sqlgen.Formula, lanes ...statements.Lane) (got []statements.Claimed) {
	t.Helper()
	values := statements.Values{"queue": "default", "worker": worker, "lease": int64(60e6), "limit": int64(limit), "since": int64(0), "running": statements.StateOpen, "most": int64(1 << 30)}
	if statements.ClaimsAtOnce(s) {
		wanted := statements.LaneColumns.Rows(len(lanes), func(i int) *statements.WantedLane {
			return &statements.WantedLane{Lane: lanes[i], Running: statements.StateOpen, Most: 1 << 30, Room: limit}
		})
		got = read(t, db, statements.ClaimedColumns, statements.Claim(s, statements.ClaimParams{Tables: tables, Formulas: []sqlgen.Formula{delay}}), values, wanted)
		slices.SortFunc(got, func(a, b statements.Claimed) int { return int(a.ID - b.ID) })
		return got
	}
	for i, lane := range lanes {
		values["limit"] = int64(limit - len(got))
		statements.SetLane(values, lane)
		for _, c := range read(t, db, statements.ClaimedColumns, statements.ClaimLane(s, tables, &delay), values, nil) {
			c.Place += i
			got = append(got, c)
		}
	}
	keys := keysOf(got)
	for i := range got {
		got[i].Fence = statements.NextFence(got[i].Fence)
	}
	if len(got) == 0 || exec(t, db, statements.Take(s, tables, len(keys)), values, keys) == len(keys) {
		return got
	}
	mine := read(t, db, idColumns, statements.Owned(s, tables, len(got), false), values, keysOf(got))
	return slices.DeleteFunc(got, func(c statements.Claimed) bool {
		return !slices.ContainsFunc(mine, func(k statements.Key) bool { return k.TaskID == c.ID })
	})
}

func keysOf(claims []statements.Claimed) []statements.Row {
	return statements.FenceColumns.Rows(len(claims), func(i int) *statements.Key {
		return &statements.Key{TaskID: claims[i].ID, Fence: claims[i].Fence}
	})
}

// TestStatementsWorkTogether takes tasks through their lives on every engine,
// and on servers that each lack one capability.
func TestStatementsWorkTogether(t *testing.T) {
	eachServer(t, func(t *testing.T, db *sqlx.DB, s dialect.Server) {
		db.SetMaxOpenConns(4)
		fresh := statements.Lane{State: statements.StateOpen, Kind: "a", Policy: "p", Priority: -3}
		other := statements.Lane{State: statements.StateOpen, Kind: "b"}
		in := func(l statements.Lane, delay int64) statements.Entry {
			return statements.Entry{Queue: "default", Kind: l.Kind, Policy: l.Policy, Priority: l.Priority, Delay: delay, MaxAttempts: 7, Payload: `{"n":1}`}
		}
		past := in(other, 0)
		past.At = sql.Null[int64]{V: 1_000_000, Valid: true}
		store(t, db, s, in(fresh, 0), in(fresh, 0), in(fresh, 0), in(fresh, 3600e6))
		store(t, db, s, past, in(other, 3600e6))
		elsewhere := in(other, 0)
		elsewhere.Queue = "elsewhere"
		store(t, db, s, elsewhere)

		heads := sweep(t, db, s)
		var lanes []statements.Lane
		for _, h := range heads {
			lanes = append(lanes, h.Lane)
			if h.Anchor > h.Now || h.Kind == "b" && h.Anchor != 1_000_000 {
				t.Errorf("the head of %+v is at %d, now is %d", h.Lane, h.Anchor, h.Now)
			}
		}
		slices.SortFunc(lanes, func(a, b statements.Lane) int { return a.Priority - b.Priority })
		if diff := cmp.Diff([]statements.Lane{fresh, other}, lanes); diff != "" {
			t.Fatalf("a sweep finds (-want +got)\n%s", diff)
		}

		hour, none := formula(t, "1h"), formula(t, "0")
		one := claim(t, db, s, "one", 2, hour, fresh, other)
		two := claim(t, db, s, "two", 10, hour, fresh, other)
		if n := len(claim(t, db, s, "three", 10, none, fresh, other)); len(one) != 2 || len(two) != 2 || n != 0 {
			t.Fatalf("of four tasks that are due the claims got %d, %d and %d", len(one), len(two), n)
		}
		for _, c := range slices.Concat(one, two) {
			if c.Fence != 1 || c.MaxAttempts != 7 || c.Previous.Valid || string(c.Payload) != `{"n":1}` || c.First.Valid || c.Place != map[bool]int{true: 2, false: 1}[c.Anchor == 1_000_000] {
				t.Errorf("a claim returned %+v", c)
			}
		}

		owner := func(name string) statements.Values {
			return statements.Values{
				"worker": name, "lease": int64(120e6), "channel": "",
				"to_state": statements.StateDone, "more": int64(0), "wait": int64(0), "failure": nil, "answer": nil,
			}
		}
		mine := keysOf(one)
		if n := change(t, db, s, statements.Extend(s, tables, 2), owner("one"), mine); n != 2 {
			t.Errorf("extended %d leases of two", n)
		}
		for _, lock := range []bool{false, true} {
			if n := len(read(t, db, idColumns, statements.Owned(s, tables, 2, lock), owner("one"), mine)); n != 2 {
				t.Errorf("a worker owns %d of its two claims", n)
			}
		}
		// No worker settles a claim of another one, nor with an earlier fence.
		stale := []statements.Row{{one[0].ID, one[0].Fence - 1}, {one[1].ID, one[1].Fence + 1}}
		for name, stmt := range map[string]statements.Stmt{
			"extend": statements.Extend(s, tables, 2), "settle alike": statements.SettleAlike(s, tables, 2), "delete": statements.Delete(s, tables, 2),
		} {
			if n := change(t, db, s, stmt, owner("two"), mine) + change(t, db, s, stmt, owner("one"), stale); n != 0 {
				t.Errorf("%s changed %d tasks of others", name, n)
			}
		}

		settle := func(worker string, c statements.Claimed, e statements.Settlement) {
			e.Key = statements.Key{TaskID: c.ID, Fence: c.Fence}
			if n := change(t, db, s, statements.Settle(s, tables, 1), owner(worker), []statements.Row{statements.SettleColumns.Row(&e)}); n != 1 {
				t.Errorf("settled %d of one task", n)
			}
		}
		settle("one", one[0], statements.Settlement{State: statements.StateOpen, Error: sql.Null[string]{V: "failed", Valid: true}})
		settle("one", one[1], statements.Settlement{State: statements.StateSnoozed, AttemptsDelta: -1, Wait: -5e6})
		settle("two", two[0], statements.Settlement{State: statements.StateDead, Result: sql.Null[string]{V: `[1]`, Valid: true}})
		if n := change(t, db, s, statements.SettleAlike(s, tables, 1), owner("two"), keysOf(two[1:])); n != 1 {
			t.Errorf("settled %d of one task as done", n)
		}
		failed := statements.AttemptEntry{Key: statements.Key{TaskID: one[0].ID, Fence: 1}, Attempt: 1, Outcome: "retried", Worker: "one", Duration: 5, Error: "failed"}
		for range 2 { // the second time it is there
			exec(t, db, statements.Record(s, tables, 1), nil, []statements.Row{statements.RecordColumns.Row(&failed)})
		}
		attempts := read(t, db, statements.AttemptColumns, statements.Attempts(s, tables), statements.Values{"id": one[0].ID}, nil)
		if len(attempts) != 1 || attempts[0].Error != "failed" || attempts[0].Stack.Valid || attempts[0].Duration != 5 {
			t.Errorf("recorded is %+v", attempts)
		}

		// A failed task waits for its delay, a snoozed one does not.
		again := fresh
		again.Attempts = 1
		snoozed := fresh
		snoozed.State = statements.StateSnoozed
		if got := claim(t, db, s, "three", 10, hour, again); len(got) != 0 {
			t.Errorf("claimed before its delay: %+v", got)
		}
		got := claim(t, db, s, "three", 10, none, again, snoozed)
		if len(got) != 2 || got[0].Fence != 2 || got[1].Fence != 2 {
			t.Fatalf("claimed %+v, want the failed and the snoozed task", got)
		}
		if n := change(t, db, s, statements.Delete(s, tables, 2), owner("three"), keysOf(got)); n != 2 {
			t.Errorf("deleted %d of two tasks", n)
		}
		exec(t, db, statements.Forget(s, tables, 1), nil, []statements.Row{{one[0].ID}})
		if left := read(t, db, statements.AttemptColumns, statements.Attempts(s, tables), statements.Values{"id": one[0].ID}, nil); len(left) != 0 {
			t.Errorf("forgotten is not %+v", left)
		}

		// The dead one is tried again, cancelled, and cleaned with the finished one.
		revival := statements.RevivalColumns.Row(&statements.Revival{Key: statements.Key{TaskID: two[0].ID, Fence: two[0].Fence}})
		if n := exec(t, db, statements.RetryTasks(s, tables, 1), statements.Values{"in_place": 0}, []statements.Row{revival}); n != 1 {
			t.Error("a dead task could not be tried again")
		}
		exec(t, db, statements.PutPayload(s, tables), statements.Values{"id": two[0].ID, "payload": "[2]"}, nil)
		if n := exec(t, db, statements.CancelTasks(s, tables, 1), nil, []statements.Row{{two[0].ID, two[0].Fence}}); n != 1 {
			t.Error("a task could not be cancelled")
		}
		filter := statements.Values{"queue": "default", "state": "cancelled", "kind": fresh.Kind, "id": two[0].ID, "after": int64(0), "limit": int64(10), "skip": 0, "keep": int64(0), "upto": int64(4e15)}
		for _, p := range []statements.ListParams{{ID: true}, {Queue: true, State: true}, {ID: true, Queue: true, Kind: true, State: true}} {
			list := read(t, db, statements.TaskColumns, statements.List(s, tables, p), filter, nil)
			if len(list) != 1 || list[0].State != "cancelled" || list[0].Priority != -3 || list[0].Policy != "p" || list[0].Attempts != 0 || list[0].Result != nil || string(list[0].Payload) != "[2]" || list[0].LastError.Valid {
				t.Errorf("the list by %+v is %+v", p, list)
			}
		}
		for _, state := range []string{"done", "cancelled"} {
			filter["state"] = state
			lanes := finishedLanes(t, db, s, state)
			if len(lanes) != 1 {
				t.Fatalf("%s tasks are in %+v", state, lanes)
			}
			statements.SetLane(filter, lanes[0].Lane)
			filter["since"] = lanes[0].Anchor
			old := read(t, db, statements.FinishedColumns, statements.Clean(s, tables), filter, nil)
			if len(old) != 1 || exec(t, db, statements.Drop(s, tables, 1), nil, []statements.Row{{old[0].ID}}) != 1 {
				t.Errorf("of one %s task %d were to be cleaned", state, len(old))
			}
		}
		if all := read(t, db, statements.TaskColumns, statements.List(s, tables, statements.ListParams{}), filter, nil); len(all) != 3 {
			t.Errorf("%d tasks are left, want three", len(all))
		}
		policy := statements.Values{"key": "k", "policy": "delay 1s"}
		exec(t, db, statements.PutPolicy(s, tables), policy, nil)
		policy["policy"] = "delay 2s"
		exec(t, db, statements.PutPolicy(s, tables), policy, nil)
		for _, keys := range [][]statements.Row{{{"k"}}, {{"another"}, {"k"}}} {
			var key, text string
			stmt := statements.Policies(s, tables, len(keys))
			if err := db.QueryRowxContext(t.Context(), stmt.SQL, stmt.Bind(nil, keys)...).Scan(&key, &text); err != nil || key != "k" || text != "delay 1s" {
				t.Errorf("of %v policy %q is %q (error %v), want the first one of k", keys, key, text, err)
			}
		}
	})
}

// TestClaimSlotsAreTwo: of three transactions two get a slot, each its own. The third one
// gets a slot when another transaction releases one.
func TestClaimSlotsAreTwo(t *testing.T) {
	eachServer(t, func(t *testing.T, db *sqlx.DB, s dialect.Server) {
		if !statements.HasClaimSlots(s) || statements.ClaimsAtOnce(s) {
			t.Skip("it has no slots, or its claims take their own")
		}
		slots := statements.Values{"slot": int64(1<<61 + 4)}
		var txs [3]*sqlx.Tx
		take := func(i int) (number int64) {
			stmt := statements.TakeClaimSlot(s)
			if err := txs[i].QueryRowxContext(t.Context(), stmt.SQL, stmt.Bind(slots, nil)...).Scan(&number); err != nil {
				t.Fatal(err)
			}
			return number
		}
		var got []int64
		for i := range txs {
			txs[i] = db.MustBegin()
			t.Cleanup(func() { _ = txs[i].Rollback() })
			got = append(got, take(i))
		}
		if !slices.Equal(got, []int64{1, 2, 0}) {
			t.Fatalf("the transactions got the slots %v, want 1, 2 and none", got)
		}
		if s.Caps.Locks == dialect.NamedLocks {
			release := statements.ReleaseClaimSlot(s)
			txs[1].MustExecContext(t.Context(), release.SQL, release.Bind(statements.Values{"slot": slots["slot"], "number": int64(2)}, nil)...)
		} else if err := txs[1].Rollback(); err != nil {
			t.Fatal(err)
		}
		if n := take(2); n != 2 {
			t.Errorf("once slot 2 is free the third transaction gets %d", n)
		}
	})
}
