// Package options reads the last argument of a call, which may be left out.
package options

import (
	"fmt"
	"reflect"
)

// One returns the options that were passed to a call, or the zero value without any. Options that
// were passed twice are an error.
func One[O any](list []O) (o O, err error) {
	switch len(list) {
	case 0:
	case 1:
		o = list[0]
	default:
		err = fmt.Errorf("%d %s: pass at most one", len(list), reflect.TypeFor[O]().Name())
	}
	return o, err
}
