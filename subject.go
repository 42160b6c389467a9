package falldue

import (
	"strings"

	"github.com/falldue/falldue/internal/control"
)

// Subject selects tasks that are paused together or get a new policy together: the tasks of a queue, of a kind, with a
// per-task policy, or with a key. If several fields are set, the Subject selects the tasks that match all of them.
// Policy is the key of a per-task policy: TaskInfo.Policy, or [backoff.Policy.Key]. Key is a task key, or the Key of a
// [TaskInfo].
type Subject struct {
	Queue, Kind, Policy, Key string
}

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
				return Subject{}, invalid("subject %.100q: must be queue:, kind:, policy: or key:, each followed by a name without spaces", text)
			}
		}
		s = Subject{Kind: text}
	}
	return s, s.err()
}

// err returns why the subject is invalid, or nil. The error wraps [ErrInvalid].
func (s Subject) err() error {
	if err := control.Subject(s).Check(); err != nil {
		return invalid("%w", err)
	}
	return nil
}
