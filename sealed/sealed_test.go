package sealed_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/sealed"
	"github.com/falldue/falldue/tasktest"
)

var (
	newer = sealed.Key{ID: "2026-11", Secret: bytes.Repeat([]byte("n"), 32)}
	older = sealed.Key{ID: "2025-11", Secret: bytes.Repeat([]byte("o"), 16)}
)

func codecOf(t *testing.T, keys ...sealed.Key) *sealed.Codec {
	t.Helper()
	c, err := sealed.New(keys...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// payment is the place of the payloads of a kind.
var payment = falldue.Place{Kind: "pay", Column: "payload"}

func seal(t *testing.T, c *sealed.Codec, p falldue.Place, data string) []byte {
	t.Helper()
	stored, err := c.Encode(p, []byte(data))
	if err != nil {
		t.Fatal(err)
	}
	return stored
}

func TestSealedDataIsReadAgain(t *testing.T) {
	t.Parallel()
	c := codecOf(t, newer, older)
	for _, data := range []string{"", "1", `{"card":"4111 1111 1111 1111"}`, `"` + strings.Repeat("long ", 100_000) + `"`} {
		stored := seal(t, c, payment, data)
		if !json.Valid(stored) || !bytes.HasPrefix(stored, []byte(`"fd1:2026-11:`)) {
			t.Errorf("stored is %.40s", stored)
		}
		if bytes.Contains(stored, []byte("4111")) || len(stored) > 200+len(data)/10 {
			t.Errorf("%d bytes are stored for %d: %.40s", len(stored), len(data), stored)
		}
		if bytes.Equal(stored, seal(t, c, payment, data)) {
			t.Error("sealing the same data twice gives the same")
		}
		if got, err := c.Decode(payment, stored); err != nil || string(got) != data {
			t.Errorf("%.40q is read as %.40q (error %v)", data, got, err)
		}
		if got, err := codecOf(t, older, newer).Decode(payment, stored); err != nil || string(got) != data {
			t.Errorf("with the keys in another order %.40q is read as %.40q (error %v)", data, got, err)
		}
	}
}

func TestDecodeRefuses(t *testing.T) {
	t.Parallel()
	c := codecOf(t, newer)
	stored := seal(t, c, payment, `"secret"`)
	changed := bytes.Clone(stored)
	changed[20] ^= 1 // still base64, or an error of that
	impostor := codecOf(t, sealed.Key{ID: newer.ID, Secret: older.Secret})
	for name, one := range map[string]struct {
		codec        *sealed.Codec
		stored, want string
	}{
		"changed":        {c, string(changed), `payload of kind "pay"`},
		"another secret": {impostor, string(stored), "another secret"},
		"an unknown key": {codecOf(t, older), string(stored), `unknown key "2026-11" of the payload of kind "pay"; the codec has ["2025-11"]`},
		"not base64":     {c, `"fd1:2026-11:?"`, "illegal base64"},
		"cut off":        {c, `"fd1:2026-11:` + base64.RawURLEncoding.EncodeToString([]byte("short")) + `"`, "cannot be opened"},
		"no key":         {c, `"fd1:"`, `unknown key ""`},
		"plain":          {c.Strict(), `{"a":1}`, "not sealed"},
		"a plain text":   {c.Strict(), `"a"`, "not sealed"},
	} {
		data, err := one.codec.Decode(payment, []byte(one.stored))
		if err == nil || !strings.Contains(err.Error(), one.want) || data != nil {
			t.Errorf("%s: %q, error %v, want one with %q", name, data, err, one.want)
		}
		if errors.Is(err, sealed.ErrUnknownKey) != strings.Contains(one.want, "unknown key") {
			t.Errorf("%s: wraps ErrUnknownKey: %v", name, err)
		}
	}
	for _, plain := range []string{`{"a":1}`, `"a"`, "1"} {
		if data, err := c.Decode(payment, []byte(plain)); err != nil || string(data) != plain {
			t.Errorf("plain %s is read as %s (error %v)", plain, data, err)
		}
	}
}

// TestCopiedDataCannotBeOpened: who can write to the table, but has no key, can copy what is
// sealed. Data opens only in its own place.
func TestCopiedDataCannotBeOpened(t *testing.T) {
	t.Parallel()
	c := codecOf(t, newer)
	places := []falldue.Place{
		payment,
		{Kind: "refund", Column: "payload"},
		{Kind: "pay", Column: "result", TaskID: 1},
		{Kind: "pay", Column: "result", TaskID: 2},
		{Kind: "pay", Column: "result"},
		{Kind: "1 pay", Column: "payload"},
	}
	for _, from := range places {
		stored := seal(t, c, from, `"approved"`)
		for _, to := range places {
			if data, err := c.Decode(to, stored); (err == nil) != (from == to) || err != nil && !strings.Contains(err.Error(), "for another place") {
				t.Errorf("sealed for %+v, in %+v: %s, error %v", from, to, data, err)
			}
		}
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	for want, keys := range map[string][]sealed.Key{
		"no key":          nil,
		`key ID ""`:       {{Secret: newer.Secret}},
		`key ID "a:b"`:    {{ID: "a:b", Secret: newer.Secret}},
		"two keys":        {newer, newer},
		"5 bytes":         {{ID: "a", Secret: []byte("short")}},
		"must be 16, 24 ": {{ID: "a"}},
	} {
		if _, err := sealed.New(keys...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want an error with %q", err, want)
		}
	}
}

// TestUnknownKeyFailsTheAttempt: the recorded error names the key, and a worker that has
// it runs the task later.
func TestUnknownKeyFailsTheAttempt(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		db := testdb.Open(t, engine)
		clock := tasktest.NewClock(t, db)
		kind := falldue.NewKind[string]("pay", falldue.KindConfig{Policy: backoff.Constant(time.Hour), DoneRetention: time.Hour})
		queue := func(keys ...sealed.Key) *falldue.Queue {
			q, err := falldue.New(db, falldue.Config{Codec: codecOf(t, keys...).Strict()})
			if err != nil {
				t.Fatal(err)
			}
			if err := q.Migrate(t.Context()); err != nil {
				t.Fatal(err)
			}
			falldue.Handle(q, kind, func(_ context.Context, task falldue.Task[string]) error {
				return task.SetResult("paid by " + task.Args)
			})
			return q
		}
		q := queue(newer)
		receipt, err := kind.Enqueue(t.Context(), q, "Ann")
		if err != nil {
			t.Fatal(err)
		}
		late := queue(older)
		if ran := tasktest.RunOne(t, late); !errors.Is(ran.Err, sealed.ErrUnknownKey) || ran.State != falldue.StateOpen {
			t.Errorf("without its key: %+v", ran)
		}
		attempts, err := late.Attempts(t.Context(), receipt.ID)
		if err != nil || len(attempts) != 1 || !strings.Contains(attempts[0].Error, `unknown key "2026-11"`) {
			t.Errorf("recorded is %+v (error %v)", attempts, err)
		}
		rotated := queue(older, newer) // seals with the older key, and knows both
		if ran := clock.Advance(t, rotated, time.Hour); len(ran) != 1 || ran[0].State != falldue.StateDone {
			t.Errorf("with both keys: %+v", ran)
		}
		if r, err := falldue.ResultOf[string](t.Context(), rotated, receipt.ID); err != nil || r != "paid by Ann" {
			t.Errorf("the result is %q (error %v)", r, err)
		}
		if _, err := falldue.ResultOf[string](t.Context(), q, receipt.ID); !errors.Is(err, sealed.ErrUnknownKey) {
			t.Errorf("the result without its key: %v", err)
		}
	})
}

// TestUniqueTasksAreHashedWithASecret: tasks whose payloads are sealed differently are equal,
// also when a key is added, and who knows the arguments but no secret cannot find them.
func TestUniqueTasksAreHashedWithASecret(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		db := testdb.Open(t, engine)
		kind := falldue.NewKind[string]("pay", falldue.KindConfig{})
		enqueue := func(codec falldue.Codec) falldue.Receipt {
			q, err := falldue.New(db, falldue.Config{Codec: codec})
			if err != nil {
				t.Fatal(err)
			}
			if err := q.Migrate(t.Context()); err != nil {
				t.Fatal(err)
			}
			r, err := kind.Enqueue(t.Context(), q, "4111", falldue.EnqueueOptions{Unique: falldue.Unique{By: falldue.ByArgs()}})
			if err != nil {
				t.Fatal(err)
			}
			return r
		}
		bare, first := enqueue(nil), enqueue(codecOf(t, older))
		if first.Existed || first.ID == bare.ID {
			t.Errorf("the hash of a sealed task is that of a plain one: %+v, %+v", bare, first)
		}
		existing := falldue.Receipt{ID: first.ID, Existed: true}
		for what, codec := range map[string]*sealed.Codec{
			"the same key": codecOf(t, older), "a new key before it": codecOf(t, newer, older), "its secret for hashes": codecOf(t, newer).HashWith(older.Secret),
		} {
			if r := enqueue(codec); r != existing {
				t.Errorf("with %s: %+v, want %+v", what, r, existing)
			}
		}
		if r := enqueue(codecOf(t, older).HashWith(newer.Secret)); r.Existed {
			t.Errorf("with another secret: %+v", r)
		}
	})
}
