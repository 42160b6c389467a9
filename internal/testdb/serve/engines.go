package main

import (
	"fmt"
	"strings"

	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/internal/testdb/galera"
)

// password is the administrator's password in containers. They listen on the
// loopback interface alone, and only while the tests run.
const password = "falldue"

// engine describes how to run an engine, in a container or as a program.
type engine struct {
	image        string            // official image, "" where the server is built from source
	env          map[string]string // sets the administrator's password in it
	port         string            // in the container
	data         string            // folder of the data in the container
	program      string            // server program
	settings     []string          // its command line, wherever it runs
	fastSettings []string          // more of the command line, which gives up durability: no data outlives the tests
	driver       string
	dsn          func(password, address string) string
	exampleDSN   string
	install      string // command that installs the programs
}

var engines = map[string]engine{
	testdb.Postgres: {
		image:        "postgres:18",
		env:          map[string]string{"POSTGRES_PASSWORD": password},
		port:         "5432/tcp",
		data:         "/var/lib/postgresql",
		program:      "postgres",
		settings:     []string{"-c", "max_connections=300"},
		fastSettings: []string{"-c", "fsync=off", "-c", "full_page_writes=off", "-c", "synchronous_commit=off"},
		driver:       "pgx", // lib/pq does not stop connecting when its context ends
		dsn: func(password, address string) string {
			return fmt.Sprintf("postgres://postgres:%s@%s/postgres?sslmode=disable", password, address)
		},
		exampleDSN: "postgres://user:password@127.0.0.1:5432/postgres?sslmode=disable",
		install:    "apt-get install postgresql",
	},
	testdb.MySQL: {
		image:        "mysql:9",
		env:          map[string]string{"MYSQL_ROOT_PASSWORD": password},
		port:         "3306/tcp",
		data:         "/var/lib/mysql",
		program:      "mysqld",
		settings:     []string{"--max-connections=300", "--skip-log-bin", "--mysqlx=OFF", "--secure-file-priv="},
		fastSettings: noSync,
		driver:       "mysql",
		dsn:          mysqlDSN,
		exampleDSN:   "root:password@tcp(127.0.0.1:3306)/mysql",
		install:      "MySQL's own packages, from dev.mysql.com; as root on Debian the tests get them by themselves",
	},
	testdb.MariaDB: {
		image:        "mariadb:11",
		env:          map[string]string{"MARIADB_ROOT_PASSWORD": password},
		port:         "3306/tcp",
		data:         "/var/lib/mysql",
		program:      "mariadbd",
		settings:     []string{"--max-connections=300", "--skip-log-bin"},
		fastSettings: noSync,
		driver:       "mysql",
		dsn:          mysqlDSN,
		exampleDSN:   "root:password@tcp(127.0.0.1:3306)/mysql",
		install:      "apt-get install mariadb-server",
	},
	testdb.TiDB: {
		program: "tidb-server",
		// One process is the whole cluster, with a store made for tests.
		settings:   []string{"-store", "unistore", "-report-status=false", "-L", "error"},
		driver:     "mysql",
		dsn:        mysqlDSN,
		exampleDSN: "root:password@tcp(127.0.0.1:4000)/mysql",
		install:    "nothing but Go, which builds them from TiDB's module",
	},
	// Its nodes are started by what package galera knows.
	testdb.Galera: {
		dsn:        func(_, address string) string { return galera.DSN(address) },
		exampleDSN: "root:password@tcp(balancer:3306)/mysql?wsrep_sync_wait=15",
		install:    "apt-get install " + strings.Join(galera.Packages, " "),
	},
}

// noSync makes InnoDB commit without waiting for a disk.
var noSync = []string{"--innodb-flush-log-at-trx-commit=0", "--innodb-flush-method=nosync", "--innodb-doublewrite=0"}

func mysqlDSN(password, address string) string {
	return fmt.Sprintf("root:%s@tcp(%s)/mysql", password, address)
}

// imageVariable returns the name of the environment variable that replaces an
// engine's image.
func imageVariable(engine string) string {
	return testdb.ServerVariable(engine) + "_IMAGE"
}
