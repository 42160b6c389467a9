package storable

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
)

// TestJSON also runs with GOEXPERIMENT=jsonv2, see make portable.
func TestJSON(t *testing.T) {
	for _, c := range []struct {
		value any
		want  string // the JSON, or
		says  string // what the error says
	}{
		{value: "ünïcödé 🎈 \ufffd", want: `"ünïcödé 🎈 ` + "\ufffd" + `"`},
		{value: json.RawMessage(`{"a": ["\\u0000", -0.1e-7]}`), want: `{"a":["\\u0000",-0.1e-7]}`},
		{value: uint64(math.MaxUint64), want: "18446744073709551615"},
		{value: int64(math.MinInt64), want: "-9223372036854775808"},
		{value: "a\xffb", says: "UTF-8"},
		{value: map[string]string{"\ufffd": "\xff"}, says: "UTF-8"},
		{value: map[string]int{"\xff": 1}, says: "UTF-8"},
		{value: json.RawMessage("\"\xff\""), says: "UTF-8"},
		{value: "a\x00b", says: "NUL"},
		{value: json.RawMessage(`["x", "\u0000"]`), says: "NUL"},
		{value: math.Inf(1), says: "unsupported value"},
		{value: json.RawMessage("18446744073709551616"), says: "18446744073709551616"},
		{value: json.RawMessage("1e999"), says: "1e999"},
	} {
		got, err := JSON(c.value)
		switch {
		case c.says == "" && (err != nil || string(got) != c.want):
			t.Errorf("%#v: got %q, error %v; want %q", c.value, got, err, c.want)
		case c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)):
			t.Errorf("%#v: got %q, error %v; want an error that says %q", c.value, got, err, c.says)
		}
	}
}

// FuzzDecode compares Decode with encoding/json. Each text is read twice, before and after another
// one, since Decode may keep what has read one. It also runs with GOEXPERIMENT=jsonv2.
func FuzzDecode(f *testing.F) {
	for _, text := range []string{
		"", " ", "null", "1", "12 ", " 12", "1 2", "{}", `{"A": 1, "B": ["x"]}`, `{"A": 1}{"A": 2}`, `{"A": 1}x`, `{"A": "x", "B": ["y"]}`,
		`{"A": 1`, `"\ud800"`, `[1, [2, {"A": null}]]`, "\xff",
	} {
		f.Add([]byte(text))
	}
	type args struct {
		A int
		B []string
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		for range 2 {
			compare[any](t, text)
			compare[args](t, text)
			compare[*args](t, text)
			compare[json.RawMessage](t, text)
			compare[args](t, []byte(`{"B": ["between"]}`))
		}
	})
}

// TestDecodeLong: of texts that are longer than what is kept, too.
func TestDecodeLong(t *testing.T) {
	compare[int](t, []byte(strings.Repeat(" ", 100_000)+"1"))
	compare[string](t, []byte(`"`+strings.Repeat("x", 100_000)+`"`))
}

func compare[T any](t *testing.T, text []byte) {
	t.Helper()
	var want T
	wantErr := json.Unmarshal(text, &want)
	got, err := Decode[T](text)
	if fmt.Sprint(err) != fmt.Sprint(wantErr) || !reflect.DeepEqual(got, want) {
		t.Fatalf("%.100q as %T: got %v, error %v; want %v, error %v", text, want, got, err, want, wantErr)
	}
}
