package statements

import (
	"strconv"
	"strings"
	"time"

	"github.com/falldue/falldue/dialect"
)

// CopyIDs selects the IDs of :rows tasks that [Copy] will store, ascending, and the
// database's now in microseconds since 1970. It is for servers with Caps.Copy.
// Parameters: table, rows, where table is the name that [dialect.Tables.Name] returns.
//
// The IDs are one text with spaces between them, because a row for each ID would cost the
// server and the driver more. PostgreSQL would first write the result of a generate_series in FROM to a
// temporary store, so it is in a subquery.
func CopyIDs(s dialect.Server) Stmt {
	return newBuilder(s, dialect.Tables{}).stmt(`
select string_agg(nextval((select pg_get_serial_sequence(:table, 'id')::regclass))::text, ' '::text), {micros {now}}
from (select generate_series({int 1}, {int :rows})) as s`)
}

// Copy takes tasks as a stream of lines that [AppendCopy] makes, on servers with
// Caps.Copy. Reading a line of a plain task, as in [EnqueueParams], is half the work.
func Copy(s dialect.Server, p EnqueueParams) Stmt {
	b := newBuilder(s, p.Tables)
	names := []string{"id"}
	for _, c := range p.Columns() {
		switch c.Name {
		case "at":
		case "delay": // together with at it is updated_at
			names = append(names, "updated_at")
		default:
			names = append(names, c.Name)
		}
	}
	b.set("columns", commas(names))
	return b.stmt(`
copy {tasks} ({columns}) from stdin`)
}

// AppendCopy appends a task as a line for [Copy], without its end. now is the
// database's time in microseconds since 1970.
func AppendCopy(line []byte, e *Entry, p EnqueueParams, id, now int64) []byte {
	line = strconv.AppendInt(line, id, 10)
	for _, c := range p.Columns() {
		switch c.Name {
		case "at":
		case "delay":
			anchor := now + e.Delay
			if e.At.Valid {
				anchor = e.At.V
			}
			line = time.UnixMicro(anchor).UTC().AppendFormat(append(line, '\t'), "2006-01-02 15:04:05.999999Z")
		default:
			line = appendCell(append(line, '\t'), c.field(e))
		}
	}
	return line
}

// copyEscapes escapes the characters that COPY's text format uses itself.
var copyEscapes = strings.NewReplacer(`\`, `\\`, "\t", `\t`, "\n", `\n`, "\r", `\r`)

// appendCell appends a number or a text in COPY's text format, or NULL.
func appendCell(line []byte, field any) []byte {
	if n, ok := intOf(field); ok {
		return strconv.AppendInt(line, n, 10)
	}
	text, ok := textOf(field)
	if !ok {
		return append(line, `\N`...)
	}
	return append(line, copyEscapes.Replace(text)...)
}
