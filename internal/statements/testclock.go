package statements

import "github.com/falldue/falldue/dialect"

// The test clock is the database's clock, moved by the number in a table of one row, so that
// all processes that use it see the same time. It is for tests: package tasktest makes
// the table, and no migration does.

// testClockTable is the name of the table. It has no schema, so the search path decides
// where the table is.
const testClockTable = "falldue_test_clock"

// testClock is a dialect that takes the time from the test clock.
type testClock struct{ dialect.Dialect }

func (t testClock) Clock() dialect.Clock {
	clock := t.Dialect.Clock()
	clock.Now = clock.Shift(clock.Now, "(select micros from "+t.Quote(testClockTable)+")")
	return clock
}

// WithTestClock returns a server whose statements take the time from the test clock.
func WithTestClock(s dialect.Server) dialect.Server {
	s.Dialect = testClock{s.Dialect}
	return s
}

// HasTestClock reports whether the server's statements take the time from the test clock.
func HasTestClock(s dialect.Server) bool {
	_, ok := s.Dialect.(testClock)
	return ok
}

// testClockBuilder returns a builder that knows {test clock}, the table.
func testClockBuilder(s dialect.Server) *builder {
	b := newBuilder(s, dialect.Tables{})
	b.set("test clock", verbatim(s.Quote(testClockTable)))
	return b
}

// CreateTestClock creates the table of the test clock, unless it is there.
func CreateTestClock(s dialect.Server) Stmt {
	return testClockBuilder(s).stmt(`
create table if not exists {test clock} (id integer not null primary key, micros bigint not null)`)
}

// StartTestClock stores the row of the test clock, unless it is there.
func StartTestClock(s dialect.Server) Stmt {
	b := testClockBuilder(s)
	switch s.Caps.Upsert {
	case dialect.OnConflict:
		b.set("unless there", "on conflict do nothing")
	case dialect.OnDuplicateKey:
		b.set("unless there", "on duplicate key update id = id")
	}
	return b.stmt(`
insert into {test clock} (id, micros) values (1, 0) {unless there}`)
}

// MoveTestClock moves the test clock ahead by :micros microseconds.
func MoveTestClock(s dialect.Server) Stmt {
	return testClockBuilder(s).stmt(`
update {test clock} set micros = micros + {int :micros}`)
}

// Now selects the time in microseconds since 1970.
func Now(s dialect.Server) Stmt {
	return newBuilder(s, dialect.Tables{}).stmt(`
select {micros {now}}`)
}

// Running selects a task that a worker runs, if there is one: its id, its kind and the
// worker. It reads the whole table.
func Running(s dialect.Server, tables dialect.Tables) Stmt {
	return newBuilder(s, tables).stmt(`
select id, kind, claimed_by from {tasks}
where claimed_by <> '' and state in ('open', 'snoozed') and updated_at > {now}
order by id limit 1`)
}
