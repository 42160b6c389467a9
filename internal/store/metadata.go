package store

import (
	"bytes"
	"encoding/json"
	"maps"
	"strings"
	"time"
)

// reservedMetadata begins the names in metadata that belong to falldue.
const reservedMetadata = "falldue."

// These names mark a task with dependents (a member of a flow) and a task with dependencies (a
// waiter) in its metadata, which a claim returns anyway. Only marked tasks take the longer way
// to be settled. Users cannot set the marks, see [ReservedMetadata].
const (
	MemberMark = reservedMetadata + "member"
	WaiterMark = reservedMetadata + "waiter"
)

// timeoutMark is the name in metadata of the time that a task's handler has, such as "1m30s". Few
// tasks have a time of their own, so that it has no column.
const timeoutMark = reservedMetadata + "timeout"

// ReservedMetadata reports whether a name in metadata belongs to falldue, and the prefix of
// all such names.
func ReservedMetadata(name string) (prefix string, reserved bool) {
	return reservedMetadata, strings.HasPrefix(name, reservedMetadata)
}

// ReadMetadata decodes stored metadata, without marks. Anything but a JSON object of texts,
// which falldue never writes, counts as no metadata: the task runs all the same.
func ReadMetadata(stored []byte) map[string]string {
	if len(stored) == 0 {
		return nil // before metadata escapes to the heap
	}
	var metadata map[string]string
	if json.Unmarshal(stored, &metadata) != nil {
		return nil
	}
	delete(metadata, MemberMark)
	delete(metadata, timeoutMark)
	if delete(metadata, WaiterMark); len(metadata) == 0 {
		return nil
	}
	return metadata
}

// HasMark reports whether stored metadata has a mark. A user's text that contains the mark
// counts too: it is rare, and costs the task the longer way only.
func HasMark(stored []byte, mark string) bool {
	return len(stored) > 0 && bytes.Contains(stored, []byte(mark))
}

// ReadTimeout returns the time that a task's handler has, or 0 if its kind's timeout applies. A text that falldue
// never writes counts as 0.
func ReadTimeout(stored []byte) time.Duration {
	if !HasMark(stored, timeoutMark) {
		return 0
	}
	var metadata map[string]string
	if json.Unmarshal(stored, &metadata) != nil {
		return 0
	}
	d, err := time.ParseDuration(metadata[timeoutMark])
	if err != nil {
		return 0
	}
	return max(d, 0)
}

// Marked returns metadata with marks, and with the time that the handler has unless it is 0.
func Marked(metadata map[string]string, marks []string, timeout time.Duration) map[string]string {
	if len(marks) == 0 && timeout == 0 {
		return metadata
	}
	marked := maps.Clone(metadata)
	if marked == nil {
		marked = map[string]string{}
	}
	for _, mark := range marks {
		marked[mark] = "1"
	}
	if timeout != 0 {
		marked[timeoutMark] = timeout.String()
	}
	return marked
}
