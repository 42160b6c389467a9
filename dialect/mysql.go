package dialect

import (
	"strings"

	"github.com/falldue/falldue/internal/mysqlerror"
)

// mysql is MySQL, MariaDB and TiDB, through go-sql-driver/mysql. They differ in
// their Caps, not in how they write what a Dialect is asked for.
type mysql struct{ name Name }

func (m mysql) Name() Name              { return m.name }
func (mysql) Quote(ident string) string { return "`" + strings.ReplaceAll(ident, "`", "``") + "`" }
func (mysql) Placeholder(int) string    { return "?" }

// Literal relies on the exponent: 1.5 is DECIMAL here, 1.5e0 is DOUBLE.
func (mysql) Literal(v float64) string {
	text := formatFloat(v)
	if !strings.Contains(text, "e") {
		text += "e0"
	}
	return signed(v, text)
}

func (mysql) Func(name string) string { return name }

func (mysql) Cast(expr string, to Type) string {
	switch to {
	case Double:
		return "(" + expr + " + 0e0)"
	case Int:
		return "cast(" + expr + " as signed)"
	case Text:
		return "cast(" + expr + " as char)"
	case JSON:
		return expr
	}
	panic(unknownType)
}

func (mysql) Clock() Clock {
	return Clock{
		Now:   "utc_timestamp(6)",
		Shift: func(m, us string) string { return "date_add(" + m + ", interval (" + us + ") microsecond)" },
		// The difference to a date of zeros, which a user may write into a row where
		// sql_mode allows it, is NULL. It counts as a moment before 1970.
		Micros: func(m string) string {
			return "coalesce(timestampdiff(microsecond, '1970-01-01', " + m + "), -1)"
		},
		Moment: func(us string) string {
			return "date_add(cast('1970-01-01' as datetime(6)), interval (" + us + ") microsecond)"
		},
		// In microseconds: MySQL rounds an INTERVAL of a fraction of a minute to
		// whole minutes.
		Due: func(column, micros, _ string, utc bool) string {
			if utc {
				return column + " <= date_sub(utc_timestamp(6), interval (" + micros + ") microsecond)"
			}
			// In the session's zone a day may have 23 or 25 hours, so the time that has
			// passed is computed from 1970 on. The second condition is for an index. Its
			// two hours are more than a change of summer time can confuse.
			then := "(timestampdiff(microsecond, '1970-01-01', utc_timestamp(6)) - (" + micros + "))"
			return "(unix_timestamp(" + column + ") * 1000000 <= " + then +
				" and " + column + " <= date_add(from_unixtime(greatest(" + then + ", 0) / 1000000), interval 2 hour))"
		},
	}
}

// Classify reads the server's error number.
func (m mysql) Classify(err error) Class {
	number, ok := mysqlerror.Number(err)
	if !ok {
		return classifyConn(err)
	}
	switch number {
	case 1213, 1205, 1020, 3572, 3101, // deadlock, lock wait, changed since read, nowait, certification
		8002, 8005, 8020, 8022, 8028, 9007: // TiDB: write conflicts, LOCK TABLES, to be run again, changed by DDL
		return Contention
	case 1062, 1586:
		return UniqueViolation
	case 1146, 1049,
		8113: // TiDB: what was prepared does not fit the tables any more
		return UndefinedTable
	case 1366, 1300, 3988, 1267, 1270, 1271: // a text is wrong for the column, or for its character set, or cannot be converted or compared
		return Unencodable
	case 1290, 1836, 1792: // read only: the server, by super_read_only, the session
		return ReadOnly
	case 1243: // a prepared statement is not there
		return PreparedStatementMissing
	case 1615: // to be prepared anew
		return StatementStale
	case 1021, 1114, 1026, 1030, 1317, 3024, 1969, // disk or table full, storage, interrupted, statement timeout
		1037, 1038, 1041, 1206, 1226, 1461, 1637, // memory, locks, the user's limits, prepared statements, transactions
		8027, 8175, 8176, 8252, 8253: // TiDB: no news of the schema, memory, resource group
		return Unavailable
	case 1040, 1203, 1053, 1047, 1077, 1079, 1080, 1927, 2006, 2013, 3032, 4031, // too many connections, of a user, shutting down, node not ready, killed, gone, idle
		9001, 9002, 9003, 9004, 9005, // TiDB: no answer from PD or TiKV, or they are busy
		1180: // failed during COMMIT; of a Galera node that was cut off the others may have the transaction
		return Disconnected
	case 1105: // unknown; Vitess sends it while a keyspace has no primary, and TiDB for much else
		if m.name == MySQL {
			return Disconnected
		}
	}
	return Other
}
