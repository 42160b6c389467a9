package statements

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/falldue/falldue/dialect"
)

// builder makes one statement from a template.
type builder struct {
	server    dialect.Server
	fragments map[string]any
	params    []param
	batch     []column // columns of the batch
	size      int      // rows of the batch
}

// verbatim is a fragment that is no template: nothing in it is a hole or a
// parameter. The names of tables are verbatim, since users choose them.
type verbatim string

// newBuilder returns a builder that knows the common fragments.
func newBuilder(s dialect.Server, tables dialect.Tables) *builder {
	b := &builder{server: s, fragments: map[string]any{}}
	b.common(tables)
	return b
}

// common sets the fragments that all statements know.
func (b *builder) common(tables dialect.Tables) {
	s, clock := b.server, b.server.Clock()
	for _, table := range []string{"tasks", "attempts", "policies", "progress", "steps", "permits", "uniques", "changes", "workers", "schedules", "flows", "edges", "minutes", "sample", "audit"} {
		b.set(table, verbatim(tables.Name(s, table)))
	}
	b.set("now", verbatim(clock.Now))
	b.set("micros", clock.Micros)
	b.set("moment", clock.Moment)
	b.set("shift", clock.Shift)
	b.set("least", b.function("least"))
	b.set("greatest", b.function("greatest"))
	b.set("quote", s.Quote)
	// A parameter where the server would guess another type.
	b.set("int", func(param string) string { return b.typed(param, Int) })
	b.set("text", func(param string) string { return b.typed(param, Text) })
	b.set("json", func(expr string) string { return s.Cast(expr, dialect.JSON) })

	b.set("next fence", "{least t.fence, 9223372036854775806} + 1") // see NextFence
	b.set("still", "")                                              // more conditions for a claim
	b.set("for update", "")                                         // locks rows, where that is possible
	switch {
	case s.Caps.LockRows && s.Caps.SkipLocked:
		b.set("for update", " for update skip locked")
	case s.Caps.LockRows:
		b.set("for update", " for update")
	}
	b.set("lane columns", laneColumns.list("", nil))
	b.set("lane text", laneText("queue", func(c column) string { return c.Name })) // see lane.go
}

func (b *builder) function(name string) func(x, y string) string {
	return func(x, y string) string { return b.server.Func(name) + "(" + x + ", " + y + ")" }
}

// typed casts a parameter on servers that give each one type.
func (b *builder) typed(param string, t ColumnType) string {
	if !b.server.Caps.TypedParameters {
		return param
	}
	return b.server.Cast(param, t.cast())
}

// set defines a fragment: a template as a string, verbatim SQL, or a function of
// one or two arguments, or of none where making the fragment is costly.
func (b *builder) set(name string, fragment any) { b.fragments[name] = fragment }

var continuation = regexp.MustCompile(`\n\t+`)

// expand fills in a template. Its parameters are marks until stmt numbers them.
func (b *builder) expand(template string) string {
	if strings.Contains(template, "\n\t") {
		template = continuation.ReplaceAllString(template, " ")
	}
	var out strings.Builder
	for i := 0; i < len(template); {
		end := i + 1
		switch rest := template[i:]; {
		case rest[0] == '{':
			end = i + closing(rest)
			out.WriteString(b.hole(template[i+1 : end-1]))
		case rest[0] == '\'':
			if end = strings.IndexByte(rest[1:], '\''); end < 0 {
				panic("statements: an open quote in " + template)
			}
			end += i + 2
			out.WriteString(template[i:end])
		case strings.HasPrefix(rest, "::"):
			end = i + 2
			out.WriteString("::")
		case rest[0] == ':':
			if end = i + len(paramName.FindString(rest)); end == i {
				panic("statements: a colon without a name in " + template)
			}
			out.WriteString(b.param(template[i+1 : end]))
		default:
			out.WriteByte(rest[0])
		}
		i = end
	}
	return out.String()
}

var paramName = regexp.MustCompile(`^:[a-z_]+`)

// closing returns the length of the hole at the start of text.
func closing(text string) int {
	depth := 0
	for i := range len(text) {
		switch text[i] {
		case '{':
			depth++
		case '}':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	panic("statements: an open brace in " + text)
}

// hole returns the text for a hole.
func (b *builder) hole(text string) string {
	if fragment, ok := b.fragments[text]; ok {
		switch fragment := fragment.(type) {
		case verbatim:
			return string(fragment)
		case string:
			return b.expand(fragment)
		case func() string:
			return fragment()
		}
	}
	name, args, _ := strings.Cut(text, " ")
	switch fragment := b.fragments[name].(type) {
	case func(string) string:
		return fragment(b.expand(args))
	case func(string, string) string:
		if x, y, ok := cutArgument(args); ok {
			return fragment(b.expand(x), b.expand(y))
		}
	}
	panic(fmt.Sprintf("statements: no fragment for {%s}", text))
}

// cutArgument splits arguments at the first comma outside of holes and
// parentheses.
func cutArgument(args string) (first, rest string, ok bool) {
	depth := 0
	for i := range len(args) {
		switch args[i] {
		case '{', '(':
			depth++
		case '}', ')':
			depth--
		case ',':
			if depth == 0 {
				return args[:i], strings.TrimPrefix(args[i+1:], " "), true
			}
		}
	}
	return args, "", false
}

// param returns the mark of a named parameter.
func (b *builder) param(name string) string {
	for i, p := range b.params {
		if p.kind == scalar && p.name == name {
			return markOf(i)
		}
	}
	return b.push(param{name: name, kind: scalar})
}

func (b *builder) push(p param) string {
	b.params = append(b.params, p)
	return markOf(len(b.params) - 1)
}

// mark encloses the index of a parameter until the text is complete. Only then
// is the order of the parameters known.
const mark = "\x00"

func markOf(i int) string { return mark + strconv.Itoa(i) + mark }

// stmt makes the statement of a template. Where the engine numbers its placeholders,
// a parameter has one placeholder, and otherwise one for each place in the text.
func (b *builder) stmt(template string) Stmt {
	numbered := b.server.Placeholder(1) != b.server.Placeholder(2)
	numbers := make(map[int]int, len(b.params))
	s := Stmt{size: b.size}
	var text strings.Builder
	for i, part := range strings.Split(b.expand(strings.TrimPrefix(template, "\n")), mark) {
		if i%2 == 0 { // between marks
			text.WriteString(part)
			continue
		}
		index, _ := strconv.Atoi(part) // as markOf wrote it
		if numbers[index] == 0 || !numbered {
			s.params = append(s.params, b.params[index])
			numbers[index] = len(s.params)
		}
		text.WriteString(b.server.Placeholder(numbers[index]))
	}
	s.SQL = text.String()
	return s
}
