package store

import (
	"bytes"
	"encoding/json"
	"maps"
	"strings"
	"time"

	"github.com/falldue/falldue/internal/statements"
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

// timeoutMark is the name in metadata of a task's own timeout, such as "1m30s". Few tasks have one,
// so it has no column.
const timeoutMark = reservedMetadata + "timeout"

// expireMark is the name in metadata of the time by which a task must have started, such as "2026-12-11T14:02:00Z".
// A retry by hand renames it, see [statements.RetryTasks].
const expireMark = statements.ExpireName

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
	for name := range metadata {
		if strings.HasPrefix(name, reservedMetadata) {
			delete(metadata, name)
		}
	}
	if len(metadata) == 0 {
		return nil
	}
	return metadata
}

// HasMark reports whether stored metadata has a mark. A user's text that contains the mark
// counts too: it is rare, and costs the task the longer way only.
func HasMark(stored []byte, mark string) bool {
	return len(stored) > 0 && bytes.Contains(stored, []byte(mark))
}

// ReadTimeout returns a task's own timeout, or 0 if the kind's timeout applies. A text that falldue never writes
// counts as 0.
func ReadTimeout(stored []byte) time.Duration {
	if !HasMark(stored, timeoutMark) {
		return 0 // without an allocation, since each run calls ReadTimeout
	}
	d, err := time.ParseDuration(readMark(stored, timeoutMark))
	if err != nil {
		return 0
	}
	return max(d, 0)
}

// ReadExpiry returns the time by which a task must have started, or the zero time if it has no such time. A text that
// falldue never writes counts as none.
func ReadExpiry(stored []byte) time.Time {
	if !HasMark(stored, expireMark) {
		return time.Time{}
	}
	at, err := time.Parse(time.RFC3339, readMark(stored, expireMark))
	if err != nil {
		return time.Time{}
	}
	return at
}

// readMark returns the text of a mark in stored metadata, or "".
func readMark(stored []byte, mark string) string {
	var metadata map[string]string
	if json.Unmarshal(stored, &metadata) != nil {
		return ""
	}
	return metadata[mark]
}

// HasExpired reports whether a task that is claimed from a lane at now, by the database's clock, has missed a time of
// its own. Only tasks of lanes of new tasks can miss it: others have started.
func HasExpired(metadata []byte, from Lane, now int64) bool {
	if len(metadata) == 0 || !from.New() {
		return false
	}
	at := ReadExpiry(metadata)
	return !at.IsZero() && now > at.UnixMicro()
}

// Marked returns metadata with marks, with the task's own timeout unless it is 0, and with the time by which the task
// must have started unless that time is zero.
func Marked(metadata map[string]string, marks []string, timeout time.Duration, expireAt time.Time) map[string]string {
	if len(marks) == 0 && timeout == 0 && expireAt.IsZero() {
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
	if !expireAt.IsZero() {
		marked[expireMark] = expireAt.UTC().Truncate(time.Microsecond).Format(time.RFC3339Nano)
	}
	return marked
}
