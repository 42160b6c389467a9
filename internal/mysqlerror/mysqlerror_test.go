package mysqlerror

import (
	"errors"
	"fmt"
	"testing"

	"github.com/go-sql-driver/mysql"
)

// MySQLError has the name of the driver's type, and another package.
type MySQLError struct{ Number uint16 }

func (*MySQLError) Error() string { return "Error 1213 (40001): Deadlock found" }

func TestNumber(t *testing.T) {
	t.Parallel()
	deadlock := &mysql.MySQLError{Number: 1213}
	for _, c := range []struct {
		name string
		err  error
		want uint16
	}{
		{"itself", deadlock, 1213},
		{"wrapped", fmt.Errorf("claim: %w", fmt.Errorf("commit: %w", deadlock)), 1213},
		{"the second of two", fmt.Errorf("%w: %w", errors.New("claim"), deadlock), 1213},
		{"joined", errors.Join(errors.New("claim"), fmt.Errorf("commit: %w", deadlock)), 1213},
		{"the first of two", errors.Join(&mysql.MySQLError{Number: 1205}, deadlock), 1205},
	} {
		if got, ok := Number(c.err); got != c.want || !ok {
			t.Errorf("%s: %d, %v, want %d", c.name, got, ok, c.want)
		}
	}
	for name, err := range map[string]error{
		"no error":                 nil,
		"a text":                   errors.New("Error 1213 (40001): Deadlock found"),
		"a type of that name":      &MySQLError{1213},
		"a nil pointer":            (*mysql.MySQLError)(nil),
		"the driver's other error": mysql.ErrInvalidConn,
		"a joined text":            errors.Join(errors.New("1213"), nil),
	} {
		if got, ok := Number(err); ok {
			t.Errorf("%s has the number %d", name, got)
		}
	}
}
