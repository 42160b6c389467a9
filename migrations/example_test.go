package migrations_test

import (
	"context"
	"database/sql"
	"fmt"
	"log"
	"strings"

	_ "modernc.org/sqlite"

	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/migrations"
)

// A Migrator brings the tables to the newest version. Queue.Migrate does the
// same; here the tables are made without a queue, as a deployment may do.
func ExampleMigrator() {
	ctx := context.Background()
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		log.Panic(err)
	}
	defer func() { _ = db.Close() }()
	db.SetMaxOpenConns(1) // a second one would see a database of its own

	server, err := dialect.Probe(ctx, db)
	if err != nil {
		log.Panic(err)
	}
	m, err := migrations.New(db, server, dialect.Tables{Prefix: "falldue_"})
	if err != nil {
		log.Panic(err)
	}
	if _, err := m.Up(ctx); err != nil {
		log.Panic(err)
	}

	list, err := m.Status(ctx)
	if err != nil {
		log.Panic(err)
	}
	first := list[0]
	fmt.Println(first.Version, first.Name, first.Applied)
	again, err := m.Up(ctx)
	fmt.Println("migrations left:", again, err)
	// Output:
	// 1 00001_falldue_tasks.sql true
	// migrations left: 0 <nil>
}

// Dump writes the migrations for another tool, with the names of the tables
// filled in. The command "falldue migrate dump" stores them in a folder.
func ExampleDump() {
	d, err := dialect.DefaultServer(dialect.SQLite)
	if err != nil {
		log.Panic(err)
	}
	files, err := migrations.Dump(d, migrations.DumpParams{Tables: dialect.Tables{Prefix: "shop_"}, Format: migrations.GolangMigrate})
	if err != nil {
		log.Panic(err)
	}
	for _, file := range files[:2] { // of the first migration
		fmt.Println(file.Name, "names shop_tasks:", strings.Contains(file.Text, `"shop_tasks"`))
	}
	// Output:
	// 00001_falldue_tasks.up.sql names shop_tasks: true
	// 00001_falldue_tasks.down.sql names shop_tasks: true
}
