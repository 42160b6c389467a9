package storable

import (
	"encoding/json"
	"math"
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
