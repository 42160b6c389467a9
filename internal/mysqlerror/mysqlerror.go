// Package mysqlerror reads the errors that go-sql-driver/mysql returns, and does not
// import it: programs on other engines do not link that driver.
package mysqlerror

import "reflect"

// Number returns the number of an error of a server of MySQL, MariaDB or TiDB, and false
// if none is in err's tree. It recognizes the driver's type by its name, since the type
// has a field for the number and no method.
func Number(err error) (number uint16, ok bool) {
	if number, ok = ownNumber(err); ok {
		return number, true
	}
	switch wrapper := err.(type) { //nolint:errorlint // this loop unwraps
	case interface{ Unwrap() error }:
		return Number(wrapper.Unwrap())
	case interface{ Unwrap() []error }:
		for _, wrapped := range wrapper.Unwrap() {
			if number, ok = Number(wrapped); ok {
				return number, true
			}
		}
	}
	return 0, false
}

// ownNumber returns the number of err itself.
func ownNumber(err error) (number uint16, ok bool) {
	v := reflect.ValueOf(err)
	if v.Kind() != reflect.Pointer || v.IsNil() {
		return 0, false
	}
	v = v.Elem()
	if t := v.Type(); t.PkgPath() != "github.com/go-sql-driver/mysql" || t.Name() != "MySQLError" {
		return 0, false
	}
	field := v.FieldByName("Number")
	if !field.CanUint() {
		return 0, false
	}
	return uint16(field.Uint()), true //nolint:gosec // the field is an uint16
}
