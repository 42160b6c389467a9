package sqlgen

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// SyntaxError explains why a text is not a formula, and where in the text the error is.
type SyntaxError struct {
	Text string // the whole text
	Pos  int    // the offset of the error in Text, in bytes
	Msg  string // the found text and what was expected instead
}

func (e *SyntaxError) Error() string {
	const most = 120
	text := e.Text
	if len(text) > most {
		text = text[:most] + "..."
	}
	return fmt.Sprintf("formula %q, byte %d: %s", text, e.Pos, e.Msg)
}

// Scope defines the names that a text may use in addition to the names of the language.
type Scope struct {
	// Names maps a name to the expression that replaces it. These names take
	// precedence over n, delay, the constants and the macros.
	Names map[string]Expr
	// Macros maps a name to a macro, which the text calls as
	// name(parameter=value, ...), or by its name without parentheses. The
	// names of the language's functions take precedence.
	Macros map[string]Macro
	// Called is called after each successful call of a macro, unless it is nil.
	Called func(MacroCall)
	// Jitter reports whether the text is the formula of a jitter, which may use the name delay.
	Jitter bool
}

// Macro returns the expression that replaces a call. Its error becomes a
// [SyntaxError] at the position of the call.
type Macro func(MacroCall) (Expr, error)

// MacroCall is a call of a macro.
type MacroCall struct {
	Name string
	Args []MacroArg
	// Whole reports whether the text consists only of this call.
	Whole bool
}

// MacroArg is one argument of a macro. Value is a constant formula. Name is
// empty if the argument has no name and is assigned by its position.
type MacroArg struct {
	Name  string
	Value Expr
}

// Parse parses a formula such as "917m * atan(n^3 / 15)".
//
//   - The name n is the number of failed attempts.
//   - A number without a unit is in seconds. The units are ms, s, m, h and d,
//     written after the number. 1h30m is one number.
//   - The operators are + - * / ^. The operator ^ is right-associative and has
//     the highest precedence: -n^2 is -(n^2).
//   - The functions are the values of [Func] and if(condition, a, b). The constants are the values of [Const].
//
// Every error is a *[SyntaxError].
func Parse(text string) (Expr, error) { return ParseWith(text, Scope{}) }

// ParseJitter is like [Parse] for the formula of a jitter, which may use the name
// delay for the delay at the same n.
func ParseJitter(text string) (Expr, error) { return ParseWith(text, Scope{Jitter: true}) }

// ParseWith is like [Parse] with the names and macros of scope. The names and macros are replaced during parsing, so
// they do not occur in the tree.
func ParseWith(text string, scope Scope) (Expr, error) {
	if len(text) > MaxText {
		return nil, &SyntaxError{text, MaxText, fmt.Sprintf("the text has %d bytes; a formula has at most %d", len(text), MaxText)}
	}
	p := parser{lexer: lexer{text: text}, scope: scope}
	p.next()
	e := p.sum()
	if p.err == nil && p.tok.kind != tokEnd {
		p.failExpected("an operator or the end")
	}
	if p.err == nil {
		if err := check(e, scope.Jitter); err != nil {
			p.fail(0, err.Error())
		}
	}
	if p.err != nil {
		return nil, p.err
	}
	return e, nil
}

// parser is a recursive-descent parser with one token of lookahead. It keeps
// its first error. After an error, each further token is the end of the text.
type parser struct {
	lexer
	tok   token
	scope Scope
	depth int
}

func (p *parser) next() { p.tok = p.lexer.next() }

// failExpected records an error that says what was expected instead of the
// current token.
func (p *parser) failExpected(what string) {
	p.fail(p.tok.pos, fmt.Sprintf("found %s, expected %s", p.tok, what))
}

// accept consumes the current token if it is s, and reports whether it was.
func (p *parser) accept(s string) bool {
	if p.err != nil || p.tok.kind != tokSymbol || p.tok.text != s {
		return false
	}
	p.next()
	return true
}

// expect consumes the current token if it is s, and records an error if it is not.
func (p *parser) expect(s, what string) {
	if !p.accept(s) {
		p.failExpected(what)
	}
}

// enter counts a level of nesting, so that no text can exhaust the stack.
func (p *parser) enter() (leave func(), ok bool) {
	if p.depth++; p.depth > MaxDepth {
		p.fail(p.tok.pos, fmt.Sprintf("the formula is nested more than %d deep", MaxDepth))
		return nil, false
	}
	return func() { p.depth-- }, true
}

// sum := product { ("+" | "-") product }
func (p *parser) sum() Expr {
	leave, ok := p.enter()
	if !ok {
		return nil
	}
	defer leave()
	x := p.product()
	for {
		switch {
		case p.accept("+"):
			x = Binary{Add, x, p.product()}
		case p.accept("-"):
			x = Binary{Subtract, x, p.product()}
		default:
			return x
		}
	}
}

// product := signed { ("*" | "/") signed }
func (p *parser) product() Expr {
	x := p.signed()
	for {
		switch {
		case p.accept("*"):
			x = Binary{Multiply, x, p.signed()}
		case p.accept("/"):
			x = Binary{Divide, x, p.signed()}
		default:
			return x
		}
	}
}

// signed := "-" signed | atom [ "^" signed ]
func (p *parser) signed() Expr {
	leave, ok := p.enter()
	if !ok {
		return nil
	}
	defer leave()
	if p.accept("-") {
		return Neg{p.signed()}
	}
	x := p.atom()
	if p.accept("^") {
		return Binary{Power, x, p.signed()}
	}
	return x
}

// atom := number | name | name "(" arguments ")" | "(" sum ")"
func (p *parser) atom() Expr {
	tok := p.tok
	switch {
	case p.accept("("):
		x := p.sum()
		p.expect(")", `an operator or ")"`)
		return x
	case tok.kind == tokNumber:
		p.next()
		return tok.number
	case tok.kind == tokName:
		p.next()
		return p.name(tok)
	}
	p.failExpected(`a number, n, a function or "("`)
	return nil
}

func (p *parser) name(tok token) Expr {
	name := tok.text
	macro, isMacro := p.scope.Macros[name]
	if p.tok.kind == tokSymbol && p.tok.text == "(" {
		if name == "if" {
			return p.conditional()
		}
		if _, ok := arity[Func(name)]; ok {
			return p.call(tok)
		}
		if isMacro {
			return p.macro(tok, macro)
		}
		p.fail(tok.pos, fmt.Sprintf("unknown function %q; the functions are %s%s", name, functionNames, p.macroNames()))
		return nil
	}
	if value, ok := p.scope.Names[name]; ok {
		return value
	}
	switch {
	case name == "n":
		return N{}
	case name == "delay" && p.scope.Jitter:
		return Delay{}
	case name == "delay":
		p.fail(tok.pos, errDelay.Error())
	case Const(name) == Pi, Const(name) == E:
		return Const(name)
	case isMacro:
		return p.macro(tok, macro)
	default:
		p.fail(tok.pos, fmt.Sprintf("unknown name %q; the names are %s%s", name, p.names(), p.macroNames()))
	}
	return nil
}

func (p *parser) call(tok token) Expr {
	f := Func(tok.text)
	p.expect("(", `"("`)
	args := []Expr{p.sum()}
	for p.accept(",") {
		args = append(args, p.sum())
	}
	p.expect(")", `"," or ")"`)
	if ok, want := f.takes(len(args)); !ok {
		p.fail(tok.pos, fmt.Sprintf("%s takes %s, not %d", f, want, len(args)))
	}
	return Call{f, args}
}

func (p *parser) conditional() Expr {
	p.expect("(", `"("`)
	x := p.sum()
	op := CompareOp(p.tok.text)
	if p.tok.kind != tokSymbol || !slices.Contains(comparisons, op) {
		p.failExpected("a comparison: < <= > >= == !=")
	}
	p.next()
	cond := Compare{op, x, p.sum()}
	p.expect(",", `","`)
	yes := p.sum()
	p.expect(",", `","`)
	no := p.sum()
	p.expect(")", `")"`)
	return If{cond, yes, no}
}

var comparisons = []CompareOp{Less, LessEqual, Greater, GreaterEqual, Equal, NotEqual}

// macro := name [ "(" [ argument { "," argument } ] ")" ]
func (p *parser) macro(tok token, expand Macro) Expr {
	call := MacroCall{Name: tok.text}
	if p.accept("(") && !p.accept(")") {
		call.Args = append(call.Args, p.argument())
		for p.accept(",") {
			call.Args = append(call.Args, p.argument())
		}
		p.expect(")", `"," or ")"`)
	}
	if p.err != nil {
		return nil
	}
	call.Whole = strings.TrimSpace(p.text[:tok.pos]) == "" && p.tok.kind == tokEnd
	e, err := expand(call)
	if err != nil {
		p.fail(tok.pos, err.Error())
	} else if p.scope.Called != nil {
		p.scope.Called(call)
	}
	return e
}

// argument := [ name "=" ] sum
func (p *parser) argument() MacroArg {
	var arg MacroArg
	start := p.tok
	if start.kind == tokName {
		rest := p.lexer
		if sign := rest.next(); sign.kind == tokSymbol && sign.text == "=" {
			arg.Name = start.text
			p.next()
			p.next()
		}
	}
	start = p.tok
	arg.Value = p.sum()
	if p.err == nil && !constant(arg.Value) {
		p.fail(start.pos, "an argument must be a constant, without n and delay")
	}
	return arg
}

// constant reports whether e depends on neither n nor the delay.
func constant(e Expr) bool {
	switch e := e.(type) {
	case N, Delay:
		return false
	case Neg:
		return constant(e.X)
	case Binary:
		return constant(e.X) && constant(e.Y)
	case Call:
		return !slices.ContainsFunc(e.Args, func(x Expr) bool { return !constant(x) })
	case If:
		return constant(e.Cond.X) && constant(e.Cond.Y) && constant(e.Then) && constant(e.Else)
	}
	return true
}

func (p *parser) names() string {
	names := []string{"n", "pi", "e"}
	if p.scope.Jitter {
		names = append(names, "delay")
	}
	return strings.Join(append(names, slices.Sorted(maps.Keys(p.scope.Names))...), ", ")
}

func (p *parser) macroNames() string {
	if len(p.scope.Macros) == 0 {
		return ""
	}
	return "; the presets are " + strings.Join(slices.Sorted(maps.Keys(p.scope.Macros)), ", ")
}
