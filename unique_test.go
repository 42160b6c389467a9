package falldue

import (
	"errors"
	"slices"
	"testing"

	"github.com/falldue/falldue/internal/testdb"
)

// hasher is a codec that makes hashes of a length.
type hasher struct {
	Codec
	length int
}

func (h hasher) Hash([]byte) []byte { return make([]byte, h.length) }

// TestInvalidUniqueKeysAreInvalid: errors of unique keys wrap ErrInvalid, including those of the codec.
func TestInvalidUniqueKeysAreInvalid(t *testing.T) {
	t.Parallel()
	if _, err := (Unique{By: ByFields("b")}).hash(nil, "k", map[string]int{"a": 1}, []byte(`{"a":1}`)); !errors.Is(err, ErrInvalid) {
		t.Errorf("an unknown field: error %v", err)
	}
	for length, ok := range map[int]bool{31: false, 32: true} {
		if _, err := (Unique{By: ByArgs()}).hash(hasher{length: length}, "k", 1, []byte("1")); (err == nil) != ok || err != nil && !errors.Is(err, ErrInvalid) {
			t.Errorf("a hash of %d bytes: %v", length, err)
		}
	}
}

// TestReceiptsOfMergedTasks: a later task of a key has the receipt of the first one, which then existed.
func TestReceiptsOfMergedTasks(t *testing.T) {
	t.Parallel()
	receipts := receiptsAt([]int{0, 1, 2, 3, 0, 2}, []Receipt{{ID: 1}, {ID: 2}, {ID: 3, Existed: true}, {ID: 4}})
	if want := []Receipt{{1, false}, {2, false}, {3, true}, {4, false}, {1, true}, {3, true}}; !slices.Equal(receipts, want) {
		t.Errorf("the receipts are %v, want %v", receipts, want)
	}
}

// TestTwoTasksWithOneKey: with ConflictFail the second one of a call fails the call.
func TestTwoTasksWithOneKey(t *testing.T) {
	t.Parallel()
	q, err := New(testdb.Open(t, testdb.SQLite), Config{})
	if err == nil {
		err = q.Migrate(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	_, err = NewKind[int]("k", KindConfig{}).EnqueueMany(t.Context(), q, []int{1, 1}, EnqueueOptions{Unique: Unique{By: ByArgs(), OnConflict: ConflictFail}})
	if exists, ok := errors.AsType[*ExistsError](err); !ok || exists.ID != 0 || !errors.Is(err, ErrExists) {
		t.Errorf("the error is %v, want an ExistsError without an id", err)
	}
}
