package testdb

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"
)

// SetTraps creates operators and functions in the schema public of a database of
// PostgreSQL, as a user may who wants statements of others to call them. They take
// each combination of the types that falldue's statements have, and raise an error.
// The functions have the names that occur in sql and that PostgreSQL has, too. SetTraps
// skips the test on a server that cannot say which are called, see [Trapped].
func SetTraps(t testing.TB, db *sqlx.DB, sql string) {
	t.Helper()
	version := 0
	if err := db.GetContext(t.Context(), &version, "select current_setting('server_version_num')::int"); err != nil {
		t.Fatal(err)
	} else if version < 140_000 {
		t.Skip("testdb: before version 14 PostgreSQL does not say what a statement calls")
	}
	names := []string{"'floor'"} // of a bait below
	for _, call := range regexp.MustCompile(`([a-z_0-9]+)\(`).FindAllStringSubmatch(sql, -1) {
		if !slices.Contains(names, "'"+call[1]+"'") {
			names = append(names, "'"+call[1]+"'")
		}
	}
	if _, err := db.ExecContext(t.Context(), fmt.Sprintf(traps, strings.Join(names, ", "))); err != nil {
		t.Fatal(err)
	}
	for _, bait := range []string{"select 1::bigint * interval '1 second'", "select 1 where 1::float8 < 2", "select floor(1::bigint)"} {
		if len(Trapped(t, db, bait)) == 0 {
			t.Errorf("testdb: no trap catches %s", bait)
		}
	}
}

const traps = `
do $$
declare
	types text[] := array['smallint', 'integer', 'bigint', 'float8', 'numeric', 'text', 'boolean', 'json', 'interval', 'timestamptz', 'timestamp', 'tid', 'oid', 'name', 'regclass', 'bigint[]', 'text[]'];
	body text := $f$ language plpgsql as 'begin raise exception ''this is a trap''; end'$f$;
	a text; b text; op text; name text; n int := 0;
begin
	foreach a in array types loop
		n := n + 1;
		execute format('create function trap%%s(%%s) returns %%2$s%%s', n, a, body);
		execute format('create operator - (rightarg = %%s, function = trap%%s)', a, n);
		foreach b in array types loop
			n := n + 1;
			execute format('create function trap%%s(%%s, %%s) returns %%3$s%%4$s', n, a, b, body);
			execute format('create function is%%s(%%s, %%s) returns boolean%%s', n, a, b, body);
			foreach op in array array['+', '-', '*', '/', '||'] loop
				execute format('create operator %%s (leftarg = %%s, rightarg = %%s, function = trap%%s)', op, a, b, n);
			end loop;
			foreach op in array array['=', '<>', '<', '<=', '>', '>='] loop
				execute format('create operator %%s (leftarg = %%s, rightarg = %%s, function = is%%s)', op, a, b, n);
			end loop;
		end loop;
	end loop;
	for name in select distinct proname from pg_catalog.pg_proc where pronamespace operator(pg_catalog.=) 'pg_catalog'::regnamespace and proname::text operator(pg_catalog.=) any(array[%s]::text[]) loop
		foreach a in array types loop
			execute format('create function %%I(%%s) returns %%2$s%%s', name, a, body);
			foreach b in array types loop
				execute format('create function %%I(%%s, %%s) returns %%2$s%%4$s', name, a, b, body);
			end loop;
		end loop;
	end loop;
end $$`

// Trapped returns the operators and functions that a statement calls and that are not
// PostgreSQL's own. PostgreSQL keeps them for the body of a function, from version 14
// on.
func Trapped(t testing.TB, db *sqlx.DB, statement string) (found []string) {
	t.Helper()
	conn, err := db.Connx(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	exec := func(sql string) bool {
		_, err := conn.ExecContext(t.Context(), sql)
		if err != nil {
			found = append(found, err.Error())
		}
		return err == nil
	}
	if !exec("prepare bait as " + statement) {
		return found
	}
	var types string
	if err := conn.GetContext(t.Context(), &types, "select pg_catalog.array_to_string(parameter_types, ', ') from pg_catalog.pg_prepared_statements where name = 'bait'"); err != nil {
		t.Fatal(err)
	}
	if exec("create function bait(" + types + ") returns void language sql begin atomic " + statement + "; end") {
		if err := conn.SelectContext(t.Context(), &found, `select pg_catalog.pg_describe_object(refclassid, refobjid, 0) from pg_catalog.pg_depend
			where refclassid in ('pg_catalog.pg_proc'::regclass::oid, 'pg_catalog.pg_operator'::regclass::oid)
			and objid = (select oid from pg_catalog.pg_proc where proname = 'bait'::name)`); err != nil {
			t.Fatal(err)
		}
		exec("drop function bait")
	}
	exec("deallocate bait")
	return found
}
