package falldue

import (
	"errors"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/falldue/falldue/internal/store"
)

// Subject names tasks that are paused together or whose policies are changed together:
// those of a queue, of a kind, with a policy of their own, or with a key. Where several
// fields are set, it names the tasks for which all of them hold. Policy is the key of a
// policy of tasks' own, as [TaskInfo] and [backoff.Policy.Key] have it. Key may also be the
// key of a [TaskInfo].
type Subject struct {
	Queue, Kind, Policy, Key string
}

// A subject is stored as its fields, each with its name. Neither names nor stored keys
// have spaces in them.
const queueSubject, kindSubject, policySubject, keySubject = "queue:", "kind:", "policy:", "key:"

// maxSubject is the greatest length of a subject as it is stored.
const maxSubject = 255

// String returns the subject as it is stored, such as "queue:default kind:charge".
func (s Subject) String() string {
	var parts []string
	for _, p := range []struct{ name, value string }{{queueSubject, s.Queue}, {kindSubject, s.Kind}, {policySubject, s.Policy}, {keySubject, s.storedKey()}} {
		if p.value != "" {
			parts = append(parts, p.name+p.value)
		}
	}
	return strings.Join(parts, " ")
}

// storedKey returns the key as lanes have it. [Queue.Paused] and [Queue.Task] return keys
// that are stored as their hashes already.
func (s Subject) storedKey() string {
	if strings.HasPrefix(s.Key, hashedKey) && len(s.Key) == len(storedKey(hashedKey)) {
		return s.Key
	}
	return storedKey(s.Key)
}

// ParseSubject parses the text of a subject, as String returns it. A text that does not begin
// with queue:, kind:, policy: or key: is the name of a kind. The error wraps [ErrInvalid].
func ParseSubject(text string) (Subject, error) {
	s, ok := parseSubject(text)
	if !ok {
		for _, name := range []string{queueSubject, kindSubject, policySubject, keySubject} {
			if strings.HasPrefix(text, name) {
				return Subject{}, invalid("subject %.100q; allowed are queue:, kind:, policy: and key:, each with what it names and without spaces", text)
			}
		}
		s = Subject{Kind: text}
	}
	return s, s.validate()
}

// parseSubject reads what String returns. It returns false for the subject of another
// kind of change, and for a field that is empty: without it the subject would name more tasks.
func parseSubject(text string) (s Subject, ok bool) {
	for field := range strings.FieldsSeq(text) {
		name, value, _ := strings.Cut(field, ":")
		switch name + ":" {
		case queueSubject:
			s.Queue = value
		case kindSubject:
			s.Kind = value
		case policySubject:
			s.Policy = value
		case keySubject:
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

// errUnknownSubject is why a worker cannot obey what a newer release has set or paused.
var errUnknownSubject = errors.New("this release does not know the subject; upgrade the worker")

// names reports whether the tasks of a lane belong to the subject.
func (s Subject) names(queue string, at store.Lane) bool {
	return (s.Queue == "" || s.Queue == queue) && (s.Kind == "" || s.Kind == at.Kind) && (s.Policy == "" || s.Policy == at.Policy) && (s.Key == "" || s.Key == at.Key)
}

func (s Subject) validate() error {
	if s == (Subject{}) {
		return invalid("a Subject without a queue, a kind, a policy or a key; set one of them")
	}
	if s.Queue != "" {
		if err := validName("queue", s.Queue); err != nil {
			return err
		}
	}
	if s.Kind != "" {
		if err := validName("kind", s.Kind); err != nil {
			return err
		}
	}
	if s.Policy != "" && !policyKey.MatchString(s.Policy) {
		return invalid("policy %.100q; allowed is the key of a policy, 16 hexadecimal digits", s.Policy)
	}
	if text := s.String(); len(text) > maxSubject {
		return invalid("a Subject of %d bytes, %s; allowed are %d", len(text), text, maxSubject)
	}
	return nil
}

var policyKey = regexp.MustCompile("^[0-9a-f]{16}$")

// heldBack is a pause as a worker knows it.
type heldBack struct {
	Subject
	until time.Time // by the worker's monotonic clock; zero is never
}

func (p heldBack) holds(now time.Time) bool { return p.until.IsZero() || now.Before(p.until) }

// paused reports whether one of the pauses holds for a lane at now.
func paused(list []heldBack, queue string, at store.Lane, now time.Time) bool {
	return slices.ContainsFunc(list, func(p heldBack) bool { return p.names(queue, at) && p.holds(now) })
}
