package statements

import (
	"bytes"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"strconv"
	"strings"

	"github.com/falldue/falldue/dialect"
)

// ColumnType is the type of a column as it enters or leaves the database.
type ColumnType int

// The types of columns.
const (
	Int ColumnType = iota
	Text
	JSON
	// Moment is a whole number here, microseconds since 1970, and a moment in the
	// database.
	Moment
)

func (t ColumnType) cast() dialect.Type {
	if t == Int || t == Moment {
		return dialect.Int
	}
	return dialect.Text // a document enters as text
}

// column is the name and the type of a column.
type column struct {
	Name string
	Type ColumnType
	Null bool // whether a value may be NULL
}

// Column is a column and the field of T that holds its value.
type Column[T any] struct {
	column
	// field returns a pointer to the value, of a type that scan and valueOf know.
	field func(*T) any
}

// Columns are the columns of rows that T holds.
type Columns[T any] []Column[T]

// col makes a Column.
func col[T any](name string, typ ColumnType, field func(*T) any) Column[T] {
	null := false
	switch field(new(T)).(type) {
	case *sql.Null[int64], *sql.Null[string]:
		null = true
	}
	return Column[T]{column{name, typ, null}, field}
}

// join puts columns together.
func join[T any](parts ...Columns[T]) (all Columns[T]) {
	for _, part := range parts {
		all = append(all, part...)
	}
	return all
}

// within returns the columns of a part of T as columns of T.
func within[T, P any](columns Columns[P], part func(*T) *P) Columns[T] {
	all := make(Columns[T], len(columns))
	for i, c := range columns {
		all[i] = Column[T]{c.column, func(t *T) any { return c.field(part(t)) }}
	}
	return all
}

// Row returns the row that t holds, in the order of the columns.
func (c Columns[T]) Row(t *T) Row { return c.Rows(1, func(int) *T { return t })[0] }

// Rows returns n rows. Row i has the fields of t(i), and each t(i) must be a different T.
// [Stmt.Bind] reads the fields. Rows allocates once for all rows.
func (c Columns[T]) Rows(n int, t func(i int) *T) []Row {
	rows, cells := make([]Row, n), make([]any, n*len(c))
	for i := range rows {
		row := cells[i*len(c) : (i+1)*len(c) : (i+1)*len(c)]
		for j := range c {
			row[j] = c[j].field(t(i))
		}
		rows[i] = row
	}
	return rows
}

// Bytes returns the size of the texts of a row.
func (c Columns[T]) Bytes(t *T) (n int) {
	for i := range c {
		if text, ok := textOf(c[i].field(t)); ok {
			n += len(text)
		}
	}
	return n
}

// Set sets the parameters that are named like the columns to the values of t.
func (c Columns[T]) Set(values Values, t *T) {
	for i := range c {
		values[c[i].Name] = valueOf(c[i].field(t))
	}
}

// Scan reads a row of a result into t. Its numbers and texts may also be an *int64 and a *[]byte.
// The bytes of row may be overwritten afterwards, since Scan copies them. A value that cannot be read makes an
// error that names its column, and the others are read all the same.
func (c Columns[T]) Scan(row []driver.Value, t *T) (first error) {
	if len(row) != len(c) {
		return fmt.Errorf("a row of %d columns; it should have %d", len(row), len(c))
	}
	for i := range c {
		if err := scan(row[i], c[i].field(t)); err != nil && first == nil {
			first = fmt.Errorf("column %s: %w", c[i].Name, err)
		}
	}
	return first
}

// columns returns the names and the types of the columns.
func (c Columns[T]) columns() []column {
	list := make([]column, len(c))
	for i := range c {
		list[i] = c[i].column
	}
	return list
}

// list returns the columns as SELECT and ORDER BY list them: each as exprs has
// it, or as its name behind prefix.
func (c Columns[T]) list(prefix string, exprs map[string]string) string {
	return list(c.columns(), ", ", func(c column) string {
		expr, ok := exprs[c.Name]
		if !ok {
			expr = prefix + c.Name
		}
		if c.Type == Moment {
			expr = "{micros " + expr + "}"
		}
		return expr
	})
}

// list joins the results of one for each column.
func list(columns []column, separator string, one func(column) string) string {
	parts := make([]string, len(columns))
	for i, c := range columns {
		parts[i] = one(c)
	}
	return strings.Join(parts, separator)
}

// valueOf returns the value of a field, or of a cell of a row, as a driver takes
// it: int64, string or nil.
func valueOf(field any) any {
	switch field := field.(type) {
	case int64, string, nil:
		return field
	case *int64:
		return *field
	case *int:
		return int64(*field)
	case *string:
		return *field
	case *sql.Null[int64]:
		if field.Valid {
			return field.V
		}
		return nil
	case *sql.Null[string]:
		if field.Valid {
			return field.V
		}
		return nil
	case *[]byte:
		if *field != nil {
			return string(*field)
		}
		return nil
	}
	panic(unknownField(field))
}

// scan reads a value of a driver into a field. NULL is an error where the field
// cannot hold it.
func scan(v driver.Value, field any) (err error) {
	switch field := field.(type) {
	case *int64:
		*field, err = WholeIn(v)
	case *int:
		var n int64
		n, err = WholeIn(v)
		if *field = int(n); int64(*field) != n {
			err = fmt.Errorf("%d is out of range", n)
		}
	case *string:
		*field, err = TextIn(v)
	case *sql.Null[int64]:
		if field.Valid = v != nil; field.Valid {
			field.V, err = WholeIn(v)
		}
	case *sql.Null[string]:
		if field.Valid = v != nil; field.Valid {
			field.V, err = TextIn(v)
		}
	case *[]byte:
		switch v := v.(type) {
		case nil:
			*field = nil
		case []byte:
			*field = bytes.Clone(v)
		case *[]byte:
			*field = bytes.Clone(*v)
		case string:
			*field = []byte(v)
		default:
			err = notText(v)
		}
	default:
		panic(unknownField(field))
	}
	return err
}

// WholeIn returns a value of a row that is a whole number.
func WholeIn(v driver.Value) (int64, error) {
	digits := ""
	switch v := v.(type) {
	case int64:
		return v, nil
	case *int64:
		return *v, nil
	case uint64: // go-sql-driver/mysql returns unsigned columns so, such as sizes in MySQL's own tables
		digits = strconv.FormatUint(v, 10)
	case []byte:
		digits = string(v)
	case *[]byte:
		digits = string(*v)
	case string:
		digits = v
	default:
		return 0, fmt.Errorf("%v (%T) is not a whole number", v, v)
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%.100q is not a whole number", digits)
	}
	return n, nil
}

// TextIn returns a value of a row that is a text.
func TextIn(v driver.Value) (string, error) {
	switch v := v.(type) {
	case []byte:
		return string(v), nil
	case *[]byte:
		return string(*v), nil
	case string:
		return v, nil
	}
	return "", notText(v)
}

func notText(v driver.Value) error {
	if n, ok := v.(*int64); ok {
		v = *n
	}
	return fmt.Errorf("%v (%T) is not text", v, v)
}

func unknownField(field any) string {
	return fmt.Sprintf("statements: a column in a field of type %T", field)
}
