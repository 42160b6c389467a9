package control_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/falldue/falldue/internal/control"
	"github.com/falldue/falldue/internal/store"
)

func TestSubjectsAreReadAsTheyAreStored(t *testing.T) {
	t.Parallel()
	for _, s := range []control.Subject{{Queue: "q"}, {Kind: "k:1"}, {Key: "customer:7"}, {Queue: "q", Kind: "k", Policy: "0123456789abcdef", Key: "x"}} {
		if got, ok := control.ParseSubject(s.String()); !ok || got != s {
			t.Errorf("%+v is read as %+v, %v", s, got, ok)
		}
	}
	long := control.Subject{Key: "with a space"}
	if stored, ok := control.ParseSubject(long.String()); !ok || stored.String() != long.String() {
		t.Errorf("%+v is read as %+v, %v", long, stored, ok)
	}
	for _, text := range []string{"", "task:3", "color:x kind:k", "kind:"} {
		if got, ok := control.ParseSubject(text); ok {
			t.Errorf("%q is read as %+v", text, got)
		}
	}
}

func TestTheMostSpecificSubjectIsFirst(t *testing.T) {
	t.Parallel()
	want := []control.Subject{{Kind: "a", Key: "t=1/e=2"}, {Kind: "a", Key: "region=europe"}, {Kind: "a", Key: "t=1"}, {Kind: "a", Key: "x"}, {Queue: "q", Key: "x"}, {Policy: "0123456789abcdef"}, {Queue: "q", Kind: "a"}, {Kind: "a"}, {Kind: "b"}, {Queue: "q"}}
	got := slices.Clone(want)
	slices.Reverse(got)
	slices.SortFunc(got, control.Subject.Compare)
	if !slices.Equal(got, want) {
		t.Errorf("sorted as %v, want %v", got, want)
	}
}

// TestSubjectsAreChecked: an empty subject, and names and keys that no task has, are errors.
func TestSubjectsAreChecked(t *testing.T) {
	t.Parallel()
	for _, s := range []control.Subject{{}, {Queue: "a b"}, {Kind: "é"}, {Policy: "zizq"}, {Kind: strings.Repeat("k", 100), Queue: strings.Repeat("q", 100), Key: strings.Repeat("x", 60)}} {
		if err := s.Check(); err == nil {
			t.Errorf("%+v is valid", s)
		}
	}
	if err := (control.Subject{Queue: "default", Kind: "charge", Policy: "0123456789abcdef", Key: "customer:42"}).Check(); err != nil {
		t.Error(err)
	}
}

// TestKeysOfPartsSelectKeys: a subject's key selects the tasks with this key, and the tasks with its parts in their keys.
func TestKeysOfPartsSelectKeys(t *testing.T) {
	t.Parallel()
	const key = "region=eu/tenant=42/endpoint=7"
	for of, want := range map[string]bool{
		"tenant=42": true, "region=eu": true, "endpoint=7": true, "tenant=42/endpoint=7": true, key: true,
		"tenant=4": false, "tenant=": false, "enant=42": false, "region=eu/endpoint=7": false, "eu": false, "42/endpoint=7": false, "": true,
	} {
		if got := (control.Subject{Kind: "k", Key: of}).Selects("q", store.Lane{Kind: "k", Key: key}); got != want {
			t.Errorf("key %q selects the tasks with %q: %t", of, key, got)
		}
	}
	if (control.Subject{Key: "b"}).Selects("q", store.Lane{Key: "a/b"}) {
		t.Error("a key without parts selects another key")
	}
}
