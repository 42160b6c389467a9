package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"slices"

	"github.com/falldue/falldue/internal/statements"
)

// each is a runner that runs each statement in a transaction of its own. It does not repeat a statement after contention:
// a commit may fail after the statement has returned rows.
type each struct{ s *Store }

func (e each) query(ctx context.Context, stmt statements.Stmt, values statements.Values, rows []statements.Row, f func(row) error) error {
	return e.s.single(ctx, func(x runner) error { return x.query(ctx, stmt, values, rows, f) })
}

func (e each) exec(ctx context.Context, stmt statements.Stmt, values statements.Values, rows []statements.Row) (result sql.Result, err error) {
	err = e.s.single(ctx, func(x runner) (err error) {
		result, err = x.exec(ctx, stmt, values, rows)
		return err
	})
	return result, err
}

// storeUnique stores entries that all are unique, and takes their keys. Entries whose keys
// others have taken in the meantime are left.
func (e *uniqueEnqueue) storeUnique(ctx context.Context, entries []int, found map[string]statements.Holder) error {
	params := statements.EnqueueParams{Tables: e.tables, Notify: e.notifies(e.x), Unique: true, Metadata: haveMetadata(e.entries)}
	columns := params.UniqueEntryColumns()
	stmt := e.stmt(stmtKey{name: "store unique", unique: true, metadata: params.Metadata, notify: params.Notify}, func() statements.Stmt { return statements.StoreUnique(e.server, params) })
	for len(entries) > 0 {
		list := entries[:fitting(e.Store, statements.LongColumns, len(entries), func(i int) *Entry { return &e.entries[entries[i]] })]
		entries = entries[len(list):]
		batch, byHash := make([]statements.UniqueEntry, len(list)), make(map[string]int, len(list))
		for n, i := range list {
			hash := e.entries[i].Unique
			batch[n] = statements.UniqueEntry{Entry: e.entries[i], Was: found[hash].Token, Wait: e.uniques[i].wait()}
			byHash[hash] = i
		}
		token := newToken()
		values := statements.Values{"table": e.tables.Name(e.server, "tasks"), "token": token}
		if params.Notify {
			values["channel"], values["notice"] = e.Channel(), e.notice(e.entries)
		}
		rows := columns.Rows(len(batch), func(n int) *statements.UniqueEntry { return &batch[n] })
		err := e.x.query(ctx, stmt, values, rows, func(r row) error {
			k := statements.UniqueKey{Token: token}
			if err := statements.StoredColumns.Scan([]driver.Value{r[0], r[len(r)-1]}, &k); err != nil {
				return err
			}
			e.receipts[byHash[k.Hash]] = Receipt{ID: k.TaskID}
			e.taken = append(e.taken, k)
			delete(byHash, k.Hash)
			return nil
		})
		if err != nil {
			return err
		}
		for _, i := range byHash {
			e.left = append(e.left, i)
		}
	}
	slices.Sort(e.left)
	return nil
}

// withdraw deletes tasks that this transaction has stored.
func (e *uniqueEnqueue) withdraw(ctx context.Context, tasks []Key) error {
	for list := range slices.Chunk(tasks, MaxBatch) {
		rows := statements.IDColumns.Rows(len(list), func(i int) *Key { return &list[i] })
		if _, err := e.x.exec(ctx, e.batch("withdraw", len(list), statements.Withdraw), nil, rows); err != nil {
			return err
		}
	}
	return nil
}

// withdrawAll deletes all tasks that this enqueue has stored in a caller's transaction,
// which may continue.
func (e *uniqueEnqueue) withdrawAll(ctx context.Context) error {
	if !e.within {
		return nil // the transaction is rolled back
	}
	var tasks []Key
	for _, r := range e.receipts {
		if r.ID != 0 && !r.Existed {
			tasks = append(tasks, Key{TaskID: r.ID})
		}
	}
	if err := e.withdraw(ctx, tasks); err != nil {
		return err
	}
	return e.dropKeys(ctx, e.x, e.taken)
}
