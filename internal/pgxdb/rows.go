package pgxdb

import (
	"cmp"
	"database/sql/driver"
	"encoding/binary"
	"io"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// formats are the types that the server sends in binary form. All others come as text.
var formats = pgx.QueryResultFormatsByOID{pgtype.BoolOID: pgx.BinaryFormatCode, pgtype.Int2OID: pgx.BinaryFormatCode, pgtype.Int4OID: pgx.BinaryFormatCode, pgtype.Int8OID: pgx.BinaryFormatCode}

// rows is the result of a query.
type rows struct {
	pgx.Rows
	// What the values of NextShared point to:
	numbers []int64
	texts   [][]byte
}

// Columns returns the names of the columns. There are none if the query failed, which
// Next returns.
func (r *rows) Columns() []string {
	fields := r.FieldDescriptions()
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.Name
	}
	return names
}

// Next reads the next row. Its texts are valid until the next call.
func (r *rows) Next(into []driver.Value) error {
	err := r.next()
	if err == nil {
		appendValues(into[:0], r.Rows)
	}
	return err
}

// NextShared is like Next, and allocates nothing: numbers are an *int64 and texts a *[]byte, which
// are valid until the next call.
func (r *rows) NextShared(into []driver.Value) error {
	if err := r.next(); err != nil {
		return err
	}
	if r.numbers == nil {
		r.numbers, r.texts = make([]int64, len(into)), make([][]byte, len(into))
	}
	fields := r.FieldDescriptions()
	for i, raw := range r.RawValues() {
		oid, format := fields[i].DataTypeOID, fields[i].Format
		if n, ok := number(oid, format, raw); ok {
			r.numbers[i] = n
			into[i] = &r.numbers[i]
		} else if raw == nil || oid == pgtype.BoolOID {
			into[i] = value(oid, format, raw)
		} else {
			r.texts[i] = raw
			into[i] = &r.texts[i]
		}
	}
	return nil
}

// next reads the next row, or returns [io.EOF] if there is none.
func (r *rows) next() error {
	if r.Rows.Next() {
		return nil
	}
	return cmp.Or(r.Err(), io.EOF)
}

// appendValues appends the values of the row that was read last.
func appendValues(list []driver.Value, from pgx.Rows) []driver.Value {
	fields := from.FieldDescriptions()
	for i, raw := range from.RawValues() {
		list = append(list, value(fields[i].DataTypeOID, fields[i].Format, raw))
	}
	return list
}

// value returns a value as package driver allows it.
func value(oid uint32, format int16, raw []byte) driver.Value {
	n, isNumber := number(oid, format, raw)
	switch {
	case raw == nil:
		return nil
	case isNumber:
		return n
	case format == pgx.BinaryFormatCode && oid == pgtype.BoolOID:
		return raw[0] != 0
	}
	return raw
}

// number returns a number, and reports whether the value is one in binary form.
//
//nolint:gosec // the conversions keep the bits of signed numbers
func number(oid uint32, format int16, raw []byte) (n int64, ok bool) {
	if raw == nil || format != pgx.BinaryFormatCode {
		return 0, false
	}
	switch oid {
	case pgtype.Int2OID:
		return int64(int16(binary.BigEndian.Uint16(raw))), true
	case pgtype.Int4OID:
		return int64(int32(binary.BigEndian.Uint32(raw))), true
	case pgtype.Int8OID:
		return int64(binary.BigEndian.Uint64(raw)), true
	}
	return 0, false
}

// Close ends the query.
func (r *rows) Close() error {
	r.Rows.Close()
	return r.Err()
}
