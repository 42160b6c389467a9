package dialect_test

import (
	"context"
	"database/sql"
	"fmt"
	"log"

	_ "modernc.org/sqlite"

	"github.com/falldue/falldue/dialect"
)

// openMemory opens an empty SQLite database in memory.
func openMemory() *sql.DB {
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		log.Panic(err)
	}
	db.SetMaxOpenConns(1) // a second one would see a database of its own
	return db
}

// Probe asks the server what it is and what it can do. The name of a driver does
// not say whether a server is MySQL or MariaDB, and of which version.
func ExampleProbe() {
	db := openMemory()
	defer func() { _ = db.Close() }()

	server, err := dialect.Probe(context.Background(), db)
	if err != nil {
		log.Panic(err)
	}
	fmt.Println(server.Name())
	fmt.Println("INSERT … RETURNING:", server.Caps.InsertReturning)
	fmt.Println("SELECT … FOR UPDATE:", server.Caps.LockRows)
	// Output:
	// sqlite
	// INSERT … RETURNING: true
	// SELECT … FOR UPDATE: false
}

// A dialect writes what engines spell differently, here a name with a quote in
// it.
func ExampleOf() {
	for _, name := range []dialect.Name{dialect.Postgres, dialect.MySQL, "oracle"} {
		d, err := dialect.Of(name)
		if err != nil {
			fmt.Println("falldue does not know", name)
			continue
		}
		fmt.Println(d.Quote(`user"s`), "=", d.Placeholder(1))
	}
	// Output:
	// "user""s" = $1
	// `user"s` = ?
	// falldue does not know oracle
}

// Classify says what the error of a driver means, for every engine by the same
// classes.
func ExampleClass() {
	db := openMemory()
	defer func() { _ = db.Close() }()
	d, err := dialect.Of(dialect.SQLite)
	if err != nil {
		log.Panic(err)
	}

	for _, statement := range []string{
		"create table users (name text unique)",
		"insert into users values ('ada')",
		"insert into users values ('ada')",
	} {
		_, err := db.Exec(statement)
		if d.Classify(err) == dialect.UniqueViolation {
			fmt.Println("the name is taken")
		}
	}
	// Output:
	// the name is taken
}
