package storable

import (
	"fmt"
	"regexp"
)

var namePattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:/@-]{0,99}$`)

// CheckName checks the name of a kind or a queue. It allows only names that the index of every
// engine can hold and compares in the same way.
func CheckName(what, name string) error {
	if !namePattern.MatchString(name) {
		return fmt.Errorf("%s %.101q: must be 1 to 100 of A-Z a-z 0-9 . _ : / @ -, the first a letter or digit", what, name)
	}
	return nil
}
