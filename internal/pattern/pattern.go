// Package pattern finds the settings of a queue among names of queues and patterns. A pattern ends with "*", which
// stands for one or more characters.
package pattern

import (
	"errors"
	"strings"
)

// Is reports whether a configured name is a pattern.
func Is(name string) bool { return strings.HasSuffix(name, "*") }

// Prefix returns the beginning of the queues that a pattern matches.
func Prefix(pattern string) string { return strings.TrimSuffix(pattern, "*") }

// Check returns an error for a name with a "*" before its end.
func Check(name string) error {
	if strings.Contains(Prefix(name), "*") {
		return errors.New(`a "*" must be the last character; it matches one or more characters`)
	}
	return nil
}

// Find returns the configured name that applies to a queue: the name of the queue, or the longest pattern that
// matches it.
func Find[T any](configured map[string]T, queue string) (name string, ok bool) {
	if _, ok := configured[queue]; ok {
		return queue, true
	}
	for p := range configured {
		if matches(p, queue) && len(p) > len(name) {
			name, ok = p, true
		}
	}
	return name, ok
}

// In reports whether a name or a pattern of a list applies to a queue.
func In(configured []string, queue string) bool {
	for _, name := range configured {
		if name == queue || matches(name, queue) {
			return true
		}
	}
	return false
}

// matches reports whether a configured name is a pattern that matches a queue.
func matches(name, queue string) bool {
	return Is(name) && len(queue) >= len(name) && strings.HasPrefix(queue, Prefix(name))
}
