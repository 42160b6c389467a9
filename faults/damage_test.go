package faults

import (
	"errors"
	"strings"
	"testing"
)

// TestDamageIsWhatTheServerSays does without a server, since none can be made to damage a
// table.
func TestDamageIsWhatTheServerSays(t *testing.T) {
	fine := []checkedRow{
		{"db.falldue_tasks", "check", "status", "OK"},
		{"db.falldue_attempts", "check", "note", "The storage engine for the table doesn't support a quick check"},
	}
	if err := damage(fine); err != nil {
		t.Errorf("of sound tables: %v", err)
	}
	err := damage(append(fine, checkedRow{"db.falldue_tasks", "check", "Warning", "InnoDB: Index 'falldue_lane' contains 37 entries, should be 36."}))
	if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "db.falldue_tasks: InnoDB: Index 'falldue_lane'") {
		t.Errorf("of a damaged table: %v", err)
	}
}
