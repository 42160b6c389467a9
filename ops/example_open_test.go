package ops_test

import (
	"context"
	"log"
	"os"
	"path/filepath"

	"github.com/jmoiron/sqlx"
	_ "modernc.org/sqlite"

	"github.com/falldue/falldue"
)

// openDB opens a new SQLite database, where an application would open its own.
// The function that it returns closes and deletes it.
func openDB() (db *sqlx.DB, closeDB func()) {
	folder, err := os.MkdirTemp("", "falldue-example-")
	if err != nil {
		log.Panic(err)
	}
	db, err = sqlx.Connect("sqlite", "file:"+filepath.ToSlash(filepath.Join(folder, "shop.db"))+
		"?_pragma=journal_mode(wal)&_pragma=busy_timeout(10000)&_txlock=immediate")
	if err != nil {
		log.Panic(err)
	}
	return db, func() {
		if err := db.Close(); err != nil {
			log.Panic(err)
		}
		if err := os.RemoveAll(folder); err != nil {
			log.Panic(err)
		}
	}
}

// newQueue makes a queue on db and creates its tables, as ExampleQueue_Migrate shows.
func newQueue(db *sqlx.DB, cfg falldue.Config) *falldue.Queue {
	q, err := falldue.New(db, cfg)
	if err != nil {
		log.Panic(err)
	}
	if err := q.Migrate(context.Background()); err != nil {
		log.Panic(err)
	}
	return q
}

// openQueue makes a queue on a database that only it uses.
func openQueue() (q *falldue.Queue, closeQueue func()) {
	db, closeDB := openDB()
	return newQueue(db, falldue.Config{}), closeDB
}
