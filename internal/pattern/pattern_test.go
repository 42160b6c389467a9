package pattern_test

import (
	"testing"

	"github.com/falldue/falldue/internal/pattern"
)

// TestFind: a name comes before a pattern, and a long pattern before a short one.
func TestFind(t *testing.T) {
	t.Parallel()
	configured := map[string]int{"mail": 1, "tenant:*": 2, "tenant:eu:*": 3}
	for queue, want := range map[string]string{
		"mail": "mail", "tenant:7": "tenant:*", "tenant:eu:7": "tenant:eu:*", "tenant:": "", "tenant:eu:": "tenant:*", "other": "", "mail2": "",
	} {
		if got, ok := pattern.Find(configured, queue); got != want || ok != (want != "") {
			t.Errorf("queue %q has the settings of %q, %v: want %q", queue, got, ok, want)
		}
	}
	if got, _ := pattern.Find(map[string]bool{"*": true}, "any"); got != "*" {
		t.Errorf(`"*" does not match any queue: %q`, got)
	}
}

// TestCheck: a "*" stands at the end.
func TestCheck(t *testing.T) {
	t.Parallel()
	for name, valid := range map[string]bool{"mail": true, "tenant:*": true, "*": true, "*:mail": false, "a**": false, "a*b": false} {
		if err := pattern.Check(name); (err == nil) != valid {
			t.Errorf("%q: %v", name, err)
		}
	}
}
