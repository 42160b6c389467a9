package falldue

import (
	"regexp"
	"strings"

	"github.com/falldue/falldue/internal/control"
)

// Subject names tasks that are paused together or whose policies are changed together:
// those of a queue, of a kind, with a policy of their own, or with a key. Where several
// fields are set, it names the tasks for which all of them hold. Policy is the key of a
// policy of tasks' own, as [TaskInfo] and [backoff.Policy.Key] have it. Key may also be the
// key of a [TaskInfo].
type Subject struct {
	Queue, Kind, Policy, Key string
}

// maxSubject is the greatest length of a subject as it is stored.
const maxSubject = 255

// String returns the subject as it is stored, such as "queue:default kind:charge".
func (s Subject) String() string { return control.Subject(s).String() }

// ParseSubject parses the text of a subject, as String returns it. A text that does not begin
// with queue:, kind:, policy: or key: is the name of a kind. The error wraps [ErrInvalid].
func ParseSubject(text string) (Subject, error) {
	parsed, ok := control.ParseSubject(text)
	s := Subject(parsed)
	if !ok {
		for _, name := range control.SubjectFields {
			if strings.HasPrefix(text, name) {
				return Subject{}, invalid("subject %.100q; allowed are queue:, kind:, policy: and key:, each with what it names and without spaces", text)
			}
		}
		s = Subject{Kind: text}
	}
	return s, s.Err()
}

// Err returns why the subject is invalid, or nil. The error wraps [ErrInvalid].
func (s Subject) Err() error {
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
