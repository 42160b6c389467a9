package falldue_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/jmoiron/sqlx"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/ops"
)

// hostileTexts are passed wherever falldue takes a text, here on every engine. They are
// also the seeds of the fuzz tests.
var hostileTexts = []string{
	"", "a", "default", "falldue_", "A.b:c/d@e-f_g", "1", "select", "NULL", "null", "sqlite_", "pg_", "PG_x", "information_schema",
	"a'b", `a"b`, "a`b", "a''b", `a\`, `a\'b`, "a;b", "'; drop table orders; --", "a\n-- +goose Down\n", "a --b", `"; drop table orders; --`, "`; drop table orders; --",
	"$1", "?", ":queue", "%", "_", "{tasks}", "--", "/*", "[x]", "a.b", `odd."Schema"`, " ", " a", "a ", "a\n", "a\r\nb", "\t", "\x1b[31m",
	"a\x00b", "\x00", `a\u0000b`, "\xff", "a\xc3", "\xed\xa0\x80", "täsks", "日本", "\U0001f600", "\u202eabc", "\ufffd", "\u2028", "İ",
	strings.Repeat("n", 40), strings.Repeat("n", 41), strings.Repeat("s", 63), strings.Repeat("s", 64), strings.Repeat("ä", 32),
	strings.Repeat("n", 100), strings.Repeat("n", 101), strings.Repeat("'", 100), strings.Repeat("x", 10_000), strings.Repeat("ä", 10_000),
}

// hostileJSON are passed as payloads of type json.RawMessage.
var hostileJSON = []string{
	"", "null", "{}", "[]", `"a"`, "1e308", "1e309", "-0", "18446744073709551615", "18446744073709551616", "0.1e-400", `"\u0000"`, `"\\u0000"`,
	`"\ud800"`, `"\ufffd"`, `{"a":1,"a":2}`, `{"half`, "{} {}", "NaN", "\xff", "\"\xff\"", " { \"a\" : [ 1 ] } ", "'", "1'; drop table orders; --",
	strings.Repeat("[", 500) + strings.Repeat("]", 500), strings.Repeat("[", 9999) + strings.Repeat("]", 9999), strings.Repeat("[", 20_000),
	`"` + strings.Repeat("x", 1<<20-2) + `"`, `"` + strings.Repeat("x", 1<<20) + `"`,
}

// hostileIDs are passed as ids, and as the id after which a list begins.
var hostileIDs = []int64{math.MinInt64, math.MinInt32, -1, 0, 1, 2, 3, 1000, math.MaxInt32, math.MaxInt32 + 1, 1 << 53, math.MaxInt64 - 1, math.MaxInt64}

// scene is a database with a queue, a task that no test may change, and a table of the
// application.
type scene struct {
	db        *sqlx.DB
	q         *falldue.Queue
	bystander falldue.TaskInfo
}

func newScene(tb testing.TB, engine string) *scene {
	tb.Helper()
	s := &scene{db: testdb.Open(tb, engine)}
	s.db.MustExec("create table orders (number integer)")
	s.db.MustExec("insert into orders values (42)")
	s.q = s.queue(tb, falldue.Config{})
	receipt, err := falldue.NewKind[string]("bystander", falldue.KindConfig{Queue: "aside"}).Enqueue(tb.Context(), s.q, "leave me alone")
	if err != nil {
		tb.Fatal(err)
	}
	if s.bystander, err = s.q.Task(tb.Context(), receipt.ID); err != nil {
		tb.Fatal(err)
	}
	return s
}

// queue makes a queue and its tables.
func (s *scene) queue(tb testing.TB, cfg falldue.Config) *falldue.Queue {
	tb.Helper()
	q, err := falldue.New(s.db, cfg)
	if err != nil {
		tb.Fatal(err)
	}
	if err := q.Migrate(tb.Context()); err != nil {
		tb.Fatalf("%+v: %v", cfg, err)
	}
	return q
}

// unharmed checks that the application's table and the other task are unchanged, and
// that there are more further tasks.
func (s *scene) unharmed(t *testing.T, more int) {
	t.Helper()
	var numbers []int
	if err := s.db.Select(&numbers, "select number from orders"); err != nil || !slices.Equal(numbers, []int{42}) {
		t.Fatalf("the application's table has %v (error %v)", numbers, err)
	}
	now, err := s.q.Task(t.Context(), s.bystander.ID)
	now.Now = s.bystander.Now
	was, _ := json.Marshal(s.bystander)
	if is, _ := json.Marshal(now); err != nil || !bytes.Equal(was, is) {
		t.Fatalf("the other task is %s (error %v), and was %s", is, err, was)
	}
	tasks := 0
	if err := s.db.Get(&tasks, "select count(*) from falldue_tasks"); err != nil || tasks != 1+more {
		t.Fatalf("there are %d tasks (error %v), want %d", tasks, err, 1+more)
	}
}

// forget deletes a task, so that the next input starts with the same tasks.
func (s *scene) forget(t *testing.T, id int64) {
	t.Helper()
	if _, err := s.db.Exec(s.db.Rebind("delete from falldue_tasks where id = ?"), id); err != nil {
		t.Fatal(err)
	}
}

// refused checks an error about a value that the caller passed. It must wrap
// ErrInvalid, be short, and contain only printable characters.
func refused(t *testing.T, err error) {
	t.Helper()
	switch {
	case !errors.Is(err, falldue.ErrInvalid):
		t.Fatalf("error %v is not ErrInvalid", err)
	case len(err.Error()) > 1000:
		t.Fatalf("the error has %d bytes", len(err.Error()))
	case !utf8.ValidString(err.Error()) || strings.ContainsFunc(err.Error(), func(r rune) bool { return !unicode.IsPrint(r) }):
		t.Fatalf("the error %q is not fit to be printed", err.Error())
	}
}

// checkNames enqueues with a kind and a queue. They must be stored unchanged, or
// refused if they are not names.
func (s *scene) checkNames(t *testing.T, kind, queue string) {
	t.Helper()
	ctx := t.Context()
	want := isName(kind) && (isName(queue) || queue == "")
	receipt, err := falldue.NewKind[string](kind, falldue.KindConfig{Queue: queue}).Enqueue(ctx, s.q, "x")
	if !want {
		refused(t, err)
		if !strings.Contains(err.Error(), ": must be ") {
			t.Fatalf("the error %q does not say what is allowed", err)
		}
		s.unharmed(t, 0)
		return
	}
	if err != nil {
		t.Fatalf("kind %q, queue %q: %v", kind, queue, err)
	}
	if queue == "" {
		queue = falldue.DefaultQueue
	}
	info, err := s.q.Task(ctx, receipt.ID)
	if err != nil || info.Kind != kind || info.Queue != queue {
		t.Fatalf("kind %q, queue %q became %q, %q (error %v)", kind, queue, info.Kind, info.Queue, err)
	}
	list, err := listed(ops.New(s.q).Tasks(ctx, ops.Filter{Kind: kind, Queue: queue}, ops.ListOptions{After: receipt.ID - 1}))
	if err != nil || len(list) != 1 || list[0].ID != receipt.ID {
		t.Fatalf("kind %q, queue %q: found %v (error %v)", kind, queue, list, err)
	}
	s.unharmed(t, 1)
	s.forget(t, receipt.ID)
}

// isName reports whether a name is valid, in another way than the library does.
func isName(name string) bool {
	const first = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
	allowed := func(r rune) bool { return strings.ContainsRune(first+"._:/@-", r) }
	return name != "" && len(name) <= 100 && strings.Contains(first, name[:1]) &&
		!strings.ContainsFunc(name, func(r rune) bool { return !allowed(r) })
}

// checkText enqueues a text: it comes back as it was, unless some engine could
// not keep it.
func (s *scene) checkText(t *testing.T, text string) {
	t.Helper()
	receipt, err := falldue.NewKind[string]("text", falldue.KindConfig{}).Enqueue(t.Context(), s.q, text)
	if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
		refused(t, err)
		s.unharmed(t, 0)
		return
	}
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	info, err := s.q.Task(t.Context(), receipt.ID)
	var back string
	if err != nil || json.Unmarshal(info.Payload, &back) != nil || back != text {
		t.Fatalf("%q became %q (error %v)", text, info.Payload, err)
	}
	s.unharmed(t, 1)
	s.forget(t, receipt.ID)
}

// checkJSON enqueues text as JSON. It must be stored byte by byte, or refused.
func (s *scene) checkJSON(t *testing.T, text string) {
	t.Helper()
	receipt, err := falldue.NewKind[json.RawMessage]("json", falldue.KindConfig{}).Enqueue(t.Context(), s.q, json.RawMessage(text))
	if err != nil {
		refused(t, err)
		s.unharmed(t, 0)
		return
	}
	want, err := json.Marshal(json.RawMessage(text))
	if err != nil {
		t.Fatalf("%.100q is no JSON (%v), and was taken", text, err)
	}
	info, err := s.q.Task(t.Context(), receipt.ID)
	if err != nil || string(info.Payload) != string(want) {
		t.Fatalf("%.100q became %.100q (error %v), want %.100q", text, info.Payload, err, want)
	}
	s.unharmed(t, 1)
	s.forget(t, receipt.ID)
}

// checkID looks up, cancels and retries a task that does not exist, and one that does.
func (s *scene) checkID(t *testing.T, id int64) {
	t.Helper()
	ctx := t.Context()
	if id == s.bystander.ID {
		return
	}
	own, err := falldue.NewKind[int]("own", falldue.KindConfig{}).Enqueue(ctx, s.q, 1)
	if err != nil {
		t.Fatal(err)
	}
	if id == own.ID {
		id = -id
	}
	_, none := s.q.Task(ctx, id)
	for name, err := range map[string]error{"Task": none, "Cancel": s.q.Cancel(ctx, id), "Retry": s.q.Retry(ctx, id)} {
		if !errors.Is(err, falldue.ErrNotFound) {
			t.Fatalf("%s of id %d: error %v, want ErrNotFound", name, id, err)
		}
	}
	if list, err := s.q.Attempts(ctx, id); err != nil || len(list) != 0 {
		t.Fatalf("id %d has attempts %v (error %v)", id, list, err)
	}
	for _, step := range []struct {
		act  func() error
		want falldue.State
	}{
		{func() error { return nil }, falldue.StateOpen},
		{func() error { return s.q.Cancel(ctx, own.ID) }, falldue.StateCancelled},
		{func() error { return s.q.Retry(ctx, own.ID) }, falldue.StateOpen},
	} {
		err := step.act()
		info, lookErr := s.q.Task(ctx, own.ID)
		if err != nil || lookErr != nil || info.State != step.want {
			t.Fatalf("task %d is %s (errors %v, %v), want %s", own.ID, info.State, err, lookErr, step.want)
		}
	}
	s.unharmed(t, 1)
	s.forget(t, own.ID)
}

// checkFilter lists tasks with any filter, and compares them with what a loop over all
// tasks finds.
func (s *scene) checkFilter(t *testing.T, all []falldue.TaskInfo, f ops.Filter, o ops.ListOptions) {
	t.Helper()
	list, err := listed(ops.New(s.q).Tasks(t.Context(), f, o))
	states := []falldue.State{"", falldue.StateOpen, falldue.StateSnoozed, falldue.StateDone, falldue.StateDead, falldue.StateCancelled}
	if o.Limit < 0 || o.Limit > 10_000 || f.Kind != "" && !isName(f.Kind) || f.Queue != "" && !isName(f.Queue) || !slices.Contains(states, f.State) {
		refused(t, err)
		return
	}
	var want, got []int64
	for _, task := range all {
		if task.ID > o.After && (f.Kind == "" || f.Kind == task.Kind) && (f.Queue == "" || f.Queue == task.Queue) &&
			(f.State == "" || f.State == task.State) && (o.Limit == 0 || len(want) < o.Limit) {
			want = append(want, task.ID)
		}
	}
	for _, task := range list {
		got = append(got, task.ID)
	}
	if err != nil || !slices.Equal(got, want) {
		t.Fatalf("%+v, %+v: found %v (error %v), want %v", f, o, got, err, want)
	}
}

// populate adds tasks for filters to find, and returns all tasks.
func (s *scene) populate(tb testing.TB) []falldue.TaskInfo {
	tb.Helper()
	for i, name := range []string{"a", "default", "1", "select", "NULL", "A", "A.b:c/d@e-f_g", strings.Repeat("n", 100)} {
		kind := falldue.NewKind[int](name, falldue.KindConfig{Queue: []string{"default", "a", name}[i%3]})
		receipt, err := kind.Enqueue(tb.Context(), s.q, i)
		if err == nil && i%2 == 0 {
			err = s.q.Cancel(tb.Context(), receipt.ID)
		}
		if err != nil {
			tb.Fatal(err)
		}
	}
	all, err := listed(ops.New(s.q).Tasks(tb.Context(), ops.Filter{}))
	if err != nil || len(all) != 9 {
		tb.Fatalf("%d tasks (error %v), want 9", len(all), err)
	}
	return all
}

// checkTables creates, uses and drops tables with a prefix and in a schema, unless New
// refuses these.
func (s *scene) checkTables(t *testing.T, prefix, schema string) {
	t.Helper()
	ctx := t.Context()
	if strings.EqualFold(prefix, "falldue_") && schema == "" || prefix == "" {
		return // the tables of the scene
	}
	q, err := falldue.New(s.db, falldue.Config{Prefix: prefix, Schema: schema})
	if err != nil {
		refused(t, err)
		if !strings.Contains(err.Error(), ": must ") && !strings.Contains(err.Error(), "only PostgreSQL") {
			t.Fatalf("the error %q does not say what is allowed", err)
		}
		s.unharmed(t, 0)
		return
	}
	if err := q.Migrate(ctx); err != nil {
		t.Fatalf("prefix %q, schema %q: %v", prefix, schema, err)
	}
	receipt, err := falldue.NewKind[string]("k", falldue.KindConfig{}).Enqueue(ctx, q, prefix)
	if err != nil {
		t.Fatalf("prefix %q, schema %q: %v", prefix, schema, err)
	}
	if info, err := q.Task(ctx, receipt.ID); err != nil || info.Kind != "k" {
		t.Fatalf("prefix %q, schema %q: task %+v (error %v)", prefix, schema, info, err)
	}
	s.unharmed(t, 0)
	m, err := q.Migrations()
	if err == nil {
		_, err = m.Down(ctx)
	}
	if err != nil {
		t.Fatalf("prefix %q, schema %q: %v", prefix, schema, err)
	}
	if _, err := q.Task(ctx, receipt.ID); !errors.Is(err, falldue.ErrNotMigrated) {
		t.Fatalf("prefix %q, schema %q: after down, error %v", prefix, schema, err)
	}
	s.unharmed(t, 0)
}

// TestHostileInput checks on every engine what the fuzz tests check on SQLite.
func TestHostileInput(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		s := newScene(t, engine)
		for _, text := range hostileTexts {
			s.checkNames(t, text, "")
			s.checkNames(t, "k", text)
			s.checkText(t, text)
			s.checkTables(t, text, "")
			s.checkTables(t, "falldue_", text)
		}
		for _, text := range hostileJSON {
			s.checkJSON(t, text)
		}
		for _, id := range hostileIDs {
			s.checkID(t, id)
		}
		all := s.populate(t)
		for _, text := range hostileTexts {
			s.checkFilter(t, all, ops.Filter{Kind: text}, ops.ListOptions{})
			s.checkFilter(t, all, ops.Filter{Queue: text}, ops.ListOptions{})
			s.checkFilter(t, all, ops.Filter{State: falldue.State(text)}, ops.ListOptions{})
		}
		for _, n := range hostileIDs {
			s.checkFilter(t, all, ops.Filter{}, ops.ListOptions{After: n, Limit: int(n % 20_000)})
		}
	})
}

func FuzzNames(f *testing.F) {
	for _, text := range hostileTexts {
		f.Add(text, "")
		f.Add("k", text)
	}
	s := newScene(f, testdb.SQLite)
	f.Fuzz(func(t *testing.T, kind, queue string) { s.checkNames(t, kind, queue) })
}

func FuzzPayload(f *testing.F) {
	for _, text := range hostileTexts {
		f.Add(text)
	}
	for _, text := range hostileJSON {
		if len(text) < 1<<16 { // the fuzzer changes one byte of a megabyte at a time
			f.Add(text)
		}
	}
	s := newScene(f, testdb.SQLite)
	f.Fuzz(func(t *testing.T, text string) {
		s.checkText(t, text)
		s.checkJSON(t, text)
	})
}

func FuzzTables(f *testing.F) {
	for _, text := range hostileTexts {
		f.Add(text, "")
		f.Add("x", text)
	}
	s := newScene(f, testdb.SQLite)
	f.Fuzz(func(t *testing.T, prefix, schema string) { s.checkTables(t, prefix, schema) })
}

func FuzzTaskIDs(f *testing.F) {
	for _, id := range hostileIDs {
		f.Add(id)
	}
	s := newScene(f, testdb.SQLite)
	f.Fuzz(func(t *testing.T, id int64) { s.checkID(t, id) })
}

func FuzzTaskFilter(f *testing.F) {
	for i, text := range hostileTexts {
		f.Add(text, "", "", int64(0), i)
		f.Add("", text, "cancelled", hostileIDs[i%len(hostileIDs)], 0)
		f.Add("a", "default", text, int64(1), -i)
	}
	s := newScene(f, testdb.SQLite)
	all := s.populate(f)
	f.Fuzz(func(t *testing.T, queue, kind, state string, after int64, limit int) {
		s.checkFilter(t, all, ops.Filter{Queue: queue, Kind: kind, State: falldue.State(state)}, ops.ListOptions{After: after, Limit: limit})
	})
}
