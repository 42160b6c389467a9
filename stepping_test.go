package falldue

import "testing"

// reader counts how often it is told to read changes.
type reader struct{ told int }

func (r *reader) ReadChanges() { r.told++ }

// TestReadersOfStepsReadAtOnce: a change that this process makes is read at once by the
// reader of a task that package tasktest runs, while it runs.
func TestReadersOfStepsReadAtOnce(t *testing.T) {
	t.Parallel()
	q, one, other := &Queue{}, &reader{}, &reader{}
	stop := q.stepping(one)
	defer q.stepping(other)()
	q.readChanges()
	if one.told != 1 || other.told != 1 {
		t.Fatalf("the readers were told to read %d and %d times, want once each", one.told, other.told)
	}
	stop()
	q.readChanges()
	if one.told != 1 || other.told != 2 {
		t.Errorf("after one has ended, it was told %d times and the other %d times", one.told, other.told)
	}
}
