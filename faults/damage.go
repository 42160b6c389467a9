package faults

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jmoiron/sqlx"

	"github.com/falldue/falldue/internal/testdb"
)

// ErrDamaged is returned by [Do] if the server reports that it has damaged a table itself.
// What falldue did on such a table cannot be judged. MariaDB 10.11.19 does so sometimes when its
// disk is full: it ends in the middle of a rollback, and then an index has entries without rows.
var ErrDamaged = errors.New("the server has damaged its own table")

// checkedRow is a row of what CHECK TABLE returns.
type checkedRow struct {
	Table string `db:"Table"`
	Op    string `db:"Op"`
	Type  string `db:"Msg_type"`
	Text  string `db:"Msg_text"`
}

// undamaged returns an ErrDamaged if a server of the MySQL family finds a table of the run
// damaged. Other engines are not asked: their errors would reach the checker.
func undamaged(ctx context.Context, db *sqlx.DB, engine string) error {
	if engine != testdb.MySQL && engine != testdb.MariaDB {
		return nil
	}
	var rows []checkedRow
	if err := db.SelectContext(ctx, &rows, "check table falldue_tasks, falldue_attempts, falldue_edges, falldue_flows, falldue_permits"); err != nil {
		return err
	}
	return damage(rows)
}

// damage returns an ErrDamaged with the findings of CHECK TABLE, or nil.
func damage(rows []checkedRow) error {
	var found []string
	for _, row := range rows {
		if row.Type == "error" || strings.EqualFold(row.Type, "warning") {
			found = append(found, row.Table+": "+row.Text)
		}
	}
	if len(found) == 0 {
		return nil
	}
	return fmt.Errorf("%w: CHECK TABLE says %s", ErrDamaged, strings.Join(found, "; "))
}
