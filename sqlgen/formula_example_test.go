package sqlgen_test

import (
	"fmt"

	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/sqlgen"
)

// A formula is evaluated in Go and rendered for an engine.
func ExampleFormula() {
	tree, err := sqlgen.Parse("min(1h, 15s + n^4)")
	if err != nil {
		fmt.Println(err)
		return
	}
	f, err := sqlgen.Compile(tree)
	if err != nil {
		fmt.Println(err)
		return
	}
	d, err := dialect.Of(dialect.SQLite)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(f.Eval(3), f.Eval(100))
	fmt.Println(f.SQL(d, d.Quote("attempts")))
	// Output:
	// 96 3600
	// case when "attempts" between 1 and 2147483647 then min(3600.0, 15.0 + power(cast("attempts" as real), 4.0)) when "attempts" > 2147483647 then 3600.0 else 0.0 end
}

// The predicate serves a table that knows nothing of this library.
func ExampleDue() {
	tree, err := sqlgen.Parse("5m")
	if err != nil {
		fmt.Println(err)
		return
	}
	f, err := sqlgen.Compile(tree)
	if err != nil {
		fmt.Println(err)
		return
	}
	d, err := dialect.Of(dialect.MySQL)
	if err != nil {
		fmt.Println(err)
		return
	}
	where, err := sqlgen.Due(d, f, sqlgen.DueParams{AttemptsColumn: "attempts", UpdatedAtColumn: "updated_at"})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("select id, task from tasks where not done and " + where)
	// Output:
	// select id, task from tasks where not done and (unix_timestamp(`updated_at`) * 1000000 <= (timestampdiff(microsecond, '1970-01-01', utc_timestamp(6)) - (case when `attempts` >= 1 then 300000000 else 0 end)) and `updated_at` <= date_add(from_unixtime(greatest((timestampdiff(microsecond, '1970-01-01', utc_timestamp(6)) - (case when `attempts` >= 1 then 300000000 else 0 end)), 0) / 1000000), interval 2 hour))
}
