package pgxdb

import (
	"database/sql/driver"
	"encoding/binary"
	"io"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// formats are the types that the server sends in binary form. All others come as text.
var formats = pgx.QueryResultFormatsByOID{pgtype.BoolOID: pgx.BinaryFormatCode, pgtype.Int2OID: pgx.BinaryFormatCode, pgtype.Int4OID: pgx.BinaryFormatCode, pgtype.Int8OID: pgx.BinaryFormatCode}

// rows is the result of a query.
type rows struct{ pgx.Rows }

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
	if !r.Rows.Next() {
		if err := r.Err(); err != nil {
			return err
		}
		return io.EOF
	}
	appendValues(into[:0], r.Rows)
	return nil
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
//
//nolint:gosec // the conversions keep the bits, which are those of signed numbers
func value(oid uint32, format int16, raw []byte) driver.Value {
	switch {
	case raw == nil:
		return nil
	case format != pgx.BinaryFormatCode:
		return raw
	}
	switch oid {
	case pgtype.BoolOID:
		return raw[0] != 0
	case pgtype.Int2OID:
		return int64(int16(binary.BigEndian.Uint16(raw)))
	case pgtype.Int4OID:
		return int64(int32(binary.BigEndian.Uint32(raw)))
	case pgtype.Int8OID:
		return int64(binary.BigEndian.Uint64(raw))
	}
	return raw
}

// Close ends the query.
func (r *rows) Close() error {
	r.Rows.Close()
	return r.Err()
}
