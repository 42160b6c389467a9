// Package control reads people's requests to all workers: paused tasks, and retry policies that
// replace the policies in the code.
package control

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/falldue/falldue/internal/storable"
	"github.com/falldue/falldue/internal/store"
)

// Subject selects the tasks of a change. An empty field selects all tasks. A task belongs to the
// subject if all other fields match the task.
type Subject struct{ Queue, Kind, Policy, Key string }

// A subject is stored as its fields, each with its name. Neither names nor stored keys have
// spaces in them.
const queueField, kindField, policyField, keyField = "queue:", "kind:", "policy:", "key:"

// SubjectFields are the names of the fields of a subject's text.
var SubjectFields = []string{queueField, kindField, policyField, keyField}

// String returns the subject as it is stored, such as "queue:default kind:charge".
func (s Subject) String() string {
	var parts []string
	for i, value := range []string{s.Queue, s.Kind, s.Policy, storable.KeyAgain(s.Key)} {
		if value != "" {
			parts = append(parts, SubjectFields[i]+value)
		}
	}
	return strings.Join(parts, " ")
}

// ParseSubject reads what String returns. It returns false for the subject of another kind of
// change, and for an empty field: without the field the subject would select more tasks.
func ParseSubject(text string) (s Subject, ok bool) {
	for field := range strings.FieldsSeq(text) {
		name, value, _ := strings.Cut(field, ":")
		switch name + ":" {
		case queueField:
			s.Queue = value
		case kindField:
			s.Kind = value
		case policyField:
			s.Policy = value
		case keyField:
			s.Key = value
		default:
			return Subject{}, false
		}
		if value == "" {
			return Subject{}, false
		}
	}
	return s, s != Subject{}
}

// errUnknownSubject explains why a worker cannot apply an override or a pause of a newer release.
var errUnknownSubject = errors.New("this release does not know the subject; upgrade the worker")

// maxSubject is the greatest length of a subject as it is stored.
const maxSubject = 255

var policyKey = regexp.MustCompile("^[0-9a-f]{16}$")

// Check returns why the subject is invalid, or nil.
func (s Subject) Check() error {
	if s == (Subject{}) {
		return errors.New("the Subject is empty: set Queue, Kind, Policy or Key")
	}
	if s.Queue != "" {
		if err := storable.CheckName("queue", s.Queue); err != nil {
			return err
		}
	}
	if s.Kind != "" {
		if err := storable.CheckName("kind", s.Kind); err != nil {
			return err
		}
	}
	if s.Policy != "" && !policyKey.MatchString(s.Policy) {
		return fmt.Errorf("policy %.100q: must be the key of a policy, 16 hexadecimal digits", s.Policy)
	}
	if text := s.String(); len(text) > maxSubject {
		return fmt.Errorf("Subject %s has %d bytes: must have at most %d", text, len(text), maxSubject)
	}
	return nil
}

// Selects reports whether the tasks of a lane belong to the subject.
func (s Subject) Selects(queue string, at store.Lane) bool {
	return (s.Queue == "" || s.Queue == queue) && (s.Kind == "" || s.Kind == at.Kind) && (s.Policy == "" || s.Policy == at.Policy) && (s.Key == "" || storable.Selects(s.Key, at.Key))
}

// Compare orders subjects, the most specific first: of the overrides that select a task, the
// first in this order is in effect for the task. A key with more parts is more specific.
func (s Subject) Compare(other Subject) int {
	rank := func(s Subject) (n int) {
		for _, field := range []string{s.Key, s.Policy, s.Kind, s.Queue} {
			if n *= 2; field != "" {
				n++
			}
		}
		return n
	}
	return cmp.Or(cmp.Compare(rank(other), rank(s)), cmp.Compare(strings.Count(other.Key, "/"), strings.Count(s.Key, "/")), cmp.Compare(s.String(), other.String()))
}
