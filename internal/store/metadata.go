package store

import (
	"bytes"
	"encoding/json"
	"maps"
	"strings"
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

// Marked returns metadata with marks.
func Marked(metadata map[string]string, marks []string) map[string]string {
	if len(marks) == 0 {
		return metadata
	}
	marked := maps.Clone(metadata)
	if marked == nil {
		marked = map[string]string{}
	}
	for _, mark := range marks {
		marked[mark] = "1"
	}
	return marked
}
