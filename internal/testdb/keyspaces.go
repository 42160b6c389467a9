package testdb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
)

// KeyspacesVariable is the name of the environment variable that lists the databases of a
// MySQL server that can't create any: the keyspaces of a Vitess cluster. Tests borrow them
// one after another, and no other process may use them meanwhile.
const KeyspacesVariable = "FALLDUE_TEST_KEYSPACES"

// ControlVariable is the name of the environment variable with the command that changes
// this cluster: vtctldclient and its options.
const ControlVariable = "FALLDUE_TEST_VTCTLDCLIENT"

// freeKeyspaces holds the keyspaces that no test has borrowed.
var freeKeyspaces = sync.OnceValue(func() chan string {
	names := strings.Split(os.Getenv(KeyspacesVariable), ",")
	free := make(chan string, len(names))
	for _, name := range names {
		free <- name
	}
	return free
})

// lendsKeyspaces reports whether databases of the engine are keyspaces.
func lendsKeyspaces(engine string) bool { return engine == MySQL && os.Getenv(KeyspacesVariable) != "" }

// borrow waits for a free keyspace and removes the tables of the test before, even if that
// test could not.
func borrow(ctx context.Context, server string) (dsn, name string, err error) {
	select {
	case name = <-freeKeyspaces():
	case <-ctx.Done():
		return "", "", fmt.Errorf("testdb: no free keyspace: %w; with -parallel 1 few are enough", ctx.Err())
	}
	if dsn, err = withDatabase(MySQL, server, name); err == nil {
		err = empty(ctx, dsn)
	}
	if err != nil {
		freeKeyspaces() <- name
		return "", "", fmt.Errorf("testdb: empty keyspace %s: %w", name, err)
	}
	return dsn, name, nil
}

// giveBack empties a keyspace for the next test.
func giveBack(ctx context.Context, server, name string) error {
	defer func() { freeKeyspaces() <- name }()
	dsn, err := withDatabase(MySQL, server, name)
	if err == nil {
		err = empty(ctx, dsn)
	}
	return err
}

// empty drops all tables of a database.
func empty(ctx context.Context, dsn string) error {
	return withServer(ctx, MySQL, dsn, func(db *sql.DB) error {
		conn, err := db.Conn(ctx)
		if err != nil {
			return err
		}
		defer conn.Close()
		names, err := tables(ctx, conn)
		if err != nil || len(names) == 0 {
			return err
		}
		_, err = conn.ExecContext(ctx, "SET foreign_key_checks = 0")
		for _, name := range names {
			_, dropErr := conn.ExecContext(ctx, "DROP TABLE IF EXISTS `"+name+"`")
			err = errors.Join(err, dropErr)
		}
		return err
	})
}

func tables(ctx context.Context, conn *sql.Conn) (names []string, err error) {
	rows, err := conn.QueryContext(ctx, "SHOW TABLES")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	return names, rows.Err()
}
