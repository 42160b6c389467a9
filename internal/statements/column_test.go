package statements

import (
	"database/sql"
	"database/sql/driver"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/falldue/falldue/dialect"
)

func TestScanReadsWhatDriversReturn(t *testing.T) {
	t.Parallel()
	want := Task{
		ID: 1, Queue: "q", Lane: Lane{State: "open", Key: "c", Priority: -2, Kind: "k", Policy: "", Attempts: 3}, MaxAttempts: 4, Fence: 5,
		Updated: 6, Created: 7, First: 8, Attempted: 9, Now: math.MaxInt64, ClaimedBy: "w", Payload: []byte("{}"),
	}
	for name, row := range map[string][]driver.Value{
		"numbers and texts": {int64(1), "q", "open", "c", int64(-2), "k", "", int64(3), int64(4), int64(5), int64(6), int64(7), int64(8), int64(9), int64(math.MaxInt64), "w", nil, "{}", nil, nil},
		"unsigned numbers":  {uint64(1), "q", "open", "c", int64(-2), "k", "", uint64(3), uint64(4), uint64(5), uint64(6), uint64(7), uint64(8), uint64(9), uint64(math.MaxInt64), "w", nil, "{}", nil, nil},
		"bytes": {[]byte("1"), []byte("q"), []byte("open"), []byte("c"), []byte("-2"), []byte("k"), []byte{}, []byte("3"), []byte("4"), []byte("5"),
			[]byte("6"), []byte("7"), []byte("8"), []byte("9"), []byte("9223372036854775807"), []byte("w"), nil, []byte("{}"), nil, nil},
		"numbers as texts": {"1", "q", "open", "c", "-2", "k", "", "3", "4", "5", "6", "7", "8", "9", "9223372036854775807", "w", nil, "{}", nil, nil},
	} {
		var got Task
		if err := TaskColumns.Scan(row, &got); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, cell := range row { // a driver uses its buffer again
			if b, ok := cell.([]byte); ok {
				clear(b)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	var got Task
	row := TaskColumns.Row(&want)
	row[len(row)-4], row[len(row)-2], row[len(row)-1] = "error", "[]", `{"a":"b"}`
	values := make([]driver.Value, len(row))
	for i := range row {
		values[i] = valueOf(row[i])
	}
	want.LastError, want.Result, want.Metadata = sql.Null[string]{V: "error", Valid: true}, []byte("[]"), []byte(`{"a":"b"}`)
	if err := TaskColumns.Scan(values, &got); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("a row that was made, scanned (-want +got):\n%s", diff)
	}
}

// TestScanNamesTheColumn: an unreadable value makes a clear error, and the rest
// of the row is read all the same, since a sweep reports the lane.
func TestScanNamesTheColumn(t *testing.T) {
	t.Parallel()
	for want, bad := range map[string]driver.Value{
		"column priority: 1.5 (float64) is not a whole number":          1.5,
		"column priority: <nil> (<nil>) is not a whole number":          nil,
		`column priority: "many" is not a whole number`:                 "many",
		`column priority: "99999999999999999999" is not a whole number`: []byte("99999999999999999999"),
	} {
		var h Head
		err := HeadColumns.Scan([]driver.Value{"open", "", bad, "kind", "", int64(1), int64(2), int64(3)}, &h)
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v: error %v, want %s", bad, err, want)
		}
		if diff := cmp.Diff(Head{Lane: Lane{State: "open", Kind: "kind", Attempts: 1}, Anchor: 2, Now: 3}, h); diff != "" {
			t.Errorf("%v: read is (-want +got)\n%s", bad, diff)
		}
	}
	var h Head
	if err := HeadColumns.Scan([]driver.Value{true, "", int64(0), "kind", nil, int64(1), int64(2), int64(3)}, &h); err == nil || !strings.Contains(err.Error(), "column state: true (bool) is not text") {
		t.Errorf("a boolean for a text: error %v", err)
	}
	if err := HeadColumns.Scan(nil, &h); err == nil {
		t.Error("an empty row is read")
	}
}

func TestRows(t *testing.T) {
	t.Parallel()
	entries := []Entry{
		{Queue: "q", Kind: "k", Policy: "p", Key: "c", Priority: -1, MaxAttempts: 2, Delay: 3, Payload: "{}"},
		{Queue: "q", Kind: "k", At: sql.Null[int64]{V: 4, Valid: true}, Payload: "[]"},
	}
	want := []Row{
		{"q", "k", "p", "c", int64(-1), int64(2), nil, int64(3), "{}"},
		{"q", "k", "", "", int64(0), int64(0), int64(4), int64(0), "[]"},
	}
	rows := func(columns Columns[Entry]) []Row {
		rows := columns.Rows(2, func(i int) *Entry { return &entries[i] })
		for _, row := range rows {
			for i := range row {
				row[i] = valueOf(row[i])
			}
		}
		return rows
	}
	if diff := cmp.Diff(want, rows(EnqueueColumns)); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]Row{{"q", "k", "{}"}, {"q", "k", "[]"}}, rows(PlainColumns)); diff != "" {
		t.Errorf("plain rows (-want +got):\n%s", diff)
	}
	entries[1].Metadata = sql.Null[string]{V: "{}", Valid: true}
	if diff := cmp.Diff([]Row{{"q", "k", "{}", nil}, {"q", "k", "[]", "{}"}}, rows(EnqueueParams{Plain: true, Metadata: true}.Columns())); diff != "" {
		t.Errorf("plain rows with metadata (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]Row{{"{}"}, {"[]"}}, rows(PayloadColumns)); diff != "" {
		t.Errorf("payloads (-want +got):\n%s", diff)
	}
	values := Values{}
	SetLane(values, Lane{State: "open", Key: "c", Priority: 1, Kind: "k", Policy: "p", Attempts: 2})
	if diff := cmp.Diff(Values{"state": "open", "task_key": "c", "priority": int64(1), "kind": "k", "policy": "p", "attempts": int64(2)}, values); diff != "" {
		t.Errorf("parameters of a lane (-want +got):\n%s", diff)
	}
}

// claimedRow is a row of a claim as a driver returns it.
var claimedRow = []driver.Value{
	int64(1), int64(1 << 40), int64(3), int64(25), int64(1 << 50), nil, nil, int64(1 << 50), nil, []byte(`{"n":1}`), nil,
}

// TestScanAllocates: Scan only allocates the values that it returns: the payload of a
// claimed task, and the texts of a head's lane.
func TestScanAllocates(t *testing.T) {
	claims := make([]Claimed, 1)
	if n := testing.AllocsPerRun(100, func() {
		if err := ClaimedColumns.Scan(claimedRow, &claims[0]); err != nil {
			t.Fatal(err)
		}
	}); n > 1 {
		t.Errorf("scanning a claimed task allocates %v times, want once, for the payload", n)
	}
	heads, row := make([]Head, 1), []driver.Value{[]byte("open"), []byte(""), int64(1), []byte("kind"), []byte("policy"), int64(1000), int64(1 << 50), int64(1 << 50)}
	if n := testing.AllocsPerRun(100, func() {
		if err := HeadColumns.Scan(row, &heads[0]); err != nil {
			t.Fatal(err)
		}
	}); n > 3 {
		t.Errorf("scanning a head allocates %v times, want three times, for its texts", n)
	}
	// The rows share one array, and point to the numbers.
	keys := make([]Key, 100)
	for i := range keys {
		keys[i] = Key{TaskID: int64(i + 1000), Fence: int64(i + 1000)}
	}
	if n := testing.AllocsPerRun(100, func() { FenceColumns.Rows(len(keys), func(i int) *Key { return &keys[i] }) }); n > 2 {
		t.Errorf("100 rows of two large numbers allocate %v times, want twice", n)
	}
}

func BenchmarkScan(b *testing.B) {
	var c Claimed
	for b.Loop() {
		if err := ClaimedColumns.Scan(claimedRow, &c); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRows(b *testing.B) {
	entries := make([]Entry, 500)
	for i := range entries {
		entries[i] = Entry{Queue: "default", Kind: "kind", MaxAttempts: 25, Delay: 1e6, Payload: `{"n":1}`}
	}
	for b.Loop() {
		EnqueueColumns.Rows(len(entries), func(i int) *Entry { return &entries[i] })
	}
}

func BenchmarkMake(b *testing.B) {
	for _, engine := range []dialect.Name{dialect.Postgres, dialect.MySQL} {
		s := server(b, engine)
		b.Run(string(engine)+"/enqueue", func(b *testing.B) {
			for b.Loop() {
				Enqueue(s, EnqueueParams{}, 500)
			}
		})
		b.Run(string(engine)+"/settle", func(b *testing.B) {
			for b.Loop() {
				Settle(s, dialect.Tables{}, 500)
			}
		})
	}
}
