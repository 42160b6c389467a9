package falldue_test

import (
	"errors"
	"testing"

	"github.com/falldue/falldue"
)

func TestSubjectsAreParsedAndChecked(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"queue:", "key:", "kind:k queue:", "queue: kind:k", "key:with a space"} { // of a variable of a shell that is empty
		if got, err := falldue.ParseSubject(text); !errors.Is(err, falldue.ErrInvalid) {
			t.Errorf("%q is read as %+v, error %v", text, got, err)
		}
	}
	if got, err := falldue.ParseSubject("mail:k"); err != nil || got != (falldue.Subject{Kind: "mail:k"}) {
		t.Errorf("the name of a kind is read as %+v, error %v", got, err)
	}
}
