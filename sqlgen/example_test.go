package sqlgen_test

import (
	"database/sql"
	"errors"
	"fmt"
	"log"

	_ "modernc.org/sqlite"

	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/sqlgen"
)

// A formula that is wrong is reported with its place in the text.
func ExampleParse() {
	tree, err := sqlgen.Parse("917m * atan(n^3 / 15)")
	fmt.Println(tree, err)

	_, err = sqlgen.Parse("917m * tan(n)")
	if wrong, ok := errors.AsType[*sqlgen.SyntaxError](err); ok {
		fmt.Println("byte", wrong.Pos, "is wrong:", wrong.Msg)
	}
	// Output:
	// 917m * atan(n^3 / 15) <nil>
	// byte 7 is wrong: unknown function "tan"; the functions are min, max, pow, exp, ln, log10, sqrt, atan, floor, ceil, abs, if
}

// Compile makes a formula total: it has a value where arithmetic has none, in Go
// and on every engine.
func ExampleCompile() {
	for _, text := range []string{"1 / (n - 2)", "2^n^n", "10s - 4s * n"} {
		tree, err := sqlgen.Parse(text)
		if err != nil {
			log.Panic(err)
		}
		f, err := sqlgen.Compile(tree)
		if err != nil {
			log.Panic(err)
		}
		fmt.Printf("%-12s  %v  %v  %v\n", f, f.Eval(2), f.Eval(10), f.Eval(1000))
	}
	// Output:
	// 1 / (n - 2)   0  0.125  0.001002004008016032
	// 2^n^n         16  3.1536e+09  3.1536e+09
	// 10s - 4s * n  2  0  0
}

// Eval takes the number of failures and returns seconds.
func ExampleFormula_Eval() {
	tree, err := sqlgen.Parse("if(n <= 3, 10s, 2m)")
	if err != nil {
		log.Panic(err)
	}
	f, err := sqlgen.Compile(tree)
	if err != nil {
		log.Panic(err)
	}
	fmt.Println(f.Eval(0), f.Eval(1), f.Eval(3), f.Eval(4))
	// Output:
	// 0 10 10 120
}

// The formula of a jitter can use the delay.
func ExampleCompileJitter() {
	tree, err := sqlgen.Parse("10s * n")
	if err != nil {
		log.Panic(err)
	}
	delay, err := sqlgen.Compile(tree)
	if err != nil {
		log.Panic(err)
	}
	if tree, err = sqlgen.ParseJitter("max(5s, delay / 4)"); err != nil {
		log.Panic(err)
	}
	jitter, err := sqlgen.CompileJitter(tree, delay)
	if err != nil {
		log.Panic(err)
	}
	fmt.Println(jitter.Eval(1), jitter.Eval(4))
	// Output:
	// 5 10
}

// A formula can use names that the program defines.
func ExampleParseWith() {
	tree, err := sqlgen.ParseWith("min(longest, 5s * n)", sqlgen.Scope{
		Names: map[string]sqlgen.Expr{"longest": sqlgen.Number{Value: 1, Unit: sqlgen.Hour}},
	})
	fmt.Println(tree, err)
	// Output:
	// min(1h, 5s * n) <nil>
}

// The predicate selects the due rows of any table.
func ExampleDue_query() {
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		log.Panic(err)
	}
	defer func() { _ = db.Close() }()
	db.SetMaxOpenConns(1) // a second one would see an empty database of its own
	if _, err := db.Exec(`
		create table feeds (url text, failures integer, failed_at text);
		insert into feeds values
			('https://example.com/a', 1, datetime('now', '-2 minutes')),
			('https://example.com/b', 3, datetime('now', '-2 minutes'))`); err != nil {
		log.Panic(err)
	}

	tree, err := sqlgen.Parse("1m * n")
	if err != nil {
		log.Panic(err)
	}
	f, err := sqlgen.Compile(tree)
	if err != nil {
		log.Panic(err)
	}
	d, err := dialect.Of(dialect.SQLite)
	if err != nil {
		log.Panic(err)
	}
	due, err := sqlgen.Due(d, f, sqlgen.DueParams{AttemptsColumn: "failures", UpdatedAtColumn: "failed_at"})
	if err != nil {
		log.Panic(err)
	}

	var url string
	if err := db.QueryRow("select url from feeds where " + due).Scan(&url); err != nil {
		log.Panic(err)
	}
	fmt.Println(url)
	// Output:
	// https://example.com/a
}
