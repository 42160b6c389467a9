package storable

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"
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

// FuzzDecoder compares Decoder with encoding/json. Each text is read twice, before and after
// another one, since a decoder is used again. It also runs with GOEXPERIMENT=jsonv2.
func FuzzDecoder(f *testing.F) {
	for _, text := range []string{
		"", " ", "null", "1", "12 ", " 12", "1 2", "{}", `{"A": 1, "B": ["x"]}`, `{"A": 1}{"A": 2}`, `{"A": 1}x`, `{"A": "x", "B": ["y"]}`,
		`{"A": 1`, `"\ud800"`, `[1, [2, {"A": null}]]`, "\xff", `{"C": "2026-11-25T00:00:00Z", "D": {"x": [1]}}`,
	} {
		f.Add([]byte(text))
	}
	type args struct {
		A int
		B []string
		C time.Time
		D json.RawMessage
		E map[string]*args
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

// TestDecoderOfLongTexts: it keeps no room for them.
func TestDecoderOfLongTexts(t *testing.T) {
	compare[int](t, []byte(strings.Repeat(" ", 100_000)+"1"))
	compare[string](t, []byte(`"`+strings.Repeat("x", 100_000)+`"`))
}

func compare[T any](t *testing.T, text []byte) {
	t.Helper()
	var want T
	wantErr := json.Unmarshal(text, &want)
	got, err := Decoder[T]()(text)
	if fmt.Sprint(err) != fmt.Sprint(wantErr) || !reflect.DeepEqual(got, want) {
		t.Fatalf("%.100q as %T: got %v, error %v; want %v, error %v", text, want, got, err, want, wantErr)
	}
}

// keeper keeps the text that it was made of, which encoding/json forbids.
type keeper struct{ text []byte }

func (k *keeper) UnmarshalJSON(text []byte) error {
	k.text = text
	return nil
}

// textKeeper does so with the text of a string.
type textKeeper struct{ text []byte }

func (k *textKeeper) UnmarshalText(text []byte) error {
	k.text = text
	return nil
}

// TestDecoderMixesNoTexts, also where a type keeps what it should not.
func TestDecoderMixesNoTexts(t *testing.T) {
	type list struct {
		Next *list
		Keep []keeper
	}
	one, two := []byte(`{"Next": {"Keep": ["one"]}}`), []byte(`{"Next": {"Keep": ["two"]}}`)
	a, err := Decoder[list]()(one)
	if _, err2 := Decoder[list]()(two); err != nil || err2 != nil || string(a.Next.Keep[0].text) != `"one"` {
		t.Errorf("after another text was read it is %q (errors %v, %v)", a.Next.Keep[0].text, err, err2)
	}
	one, two = []byte(`{"k": "one"}`), []byte(`{"k": "two"}`)
	b, err := Decoder[map[string]textKeeper]()(one)
	if _, err2 := Decoder[map[string]textKeeper]()(two); err != nil || err2 != nil || string(b["k"].text) != "one" {
		t.Errorf("after another text was read it is %q (errors %v, %v)", b["k"].text, err, err2)
	}
}
