package repotest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// logged is a message that falldue logs, without "falldue: ".
type logged struct{ level, message string }

// TestLogsListsEveryMessage compares the messages that the library logs, with their levels,
// with the table of docs/logs.md.
func TestLogsListsEveryMessage(t *testing.T) {
	t.Parallel()
	code, page := messagesOfTheCode(t), messagesOfThePage(t)
	for _, m := range code {
		if !slices.Contains(page, m) {
			t.Errorf("docs/logs.md lacks | %s | `%s` |", m.level, m.message)
		}
	}
	for _, m := range page {
		if !slices.Contains(code, m) {
			t.Errorf("docs/logs.md has | %s | `%s` |, which nothing logs", m.level, m.message)
		}
	}
	if len(code) < 40 {
		t.Errorf("the code logs %d messages; the test does not find all", len(code))
	}
}

// messagesOfTheCode returns the messages with which methods of loggers are called. What is
// not constant in one is "…".
func messagesOfTheCode(t *testing.T) (list []logged) {
	for _, file := range sourceFiles(t) {
		if !strings.Contains(readFile(t, file), `"falldue: `) || strings.HasSuffix(file, "_test.go") || programs.MatchString(file) {
			continue
		}
		tree, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(tree, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			method, ok := call.Fun.(*ast.SelectorExpr)
			if !ok || !slices.Contains([]string{"Debug", "Info", "Warn", "Error", "Log", "LogAttrs", "NewRecord"}, method.Sel.Name) {
				return true
			}
			for _, arg := range call.Args {
				if message, ok := strings.CutPrefix(constant(arg), "falldue: "); ok {
					level := strings.NewReplacer("NewRecord", "Warn", "LogAttrs", "Info").Replace(method.Sel.Name) // of packages retry and signals
					list = append(list, logged{level, message})
				}
			}
			return true
		})
	}
	return list
}

// programs are the files of programs, which do not log as a worker does.
var programs = regexp.MustCompile(`^(bench|cmd|faults|examples)/`)

// constant returns a text that is made of literals, with "…" for anything else.
func constant(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		if text, err := strconv.Unquote(e.Value); err == nil && e.Kind == token.STRING {
			return text
		}
	case *ast.BinaryExpr:
		if e.Op == token.ADD {
			return constant(e.X) + constant(e.Y)
		}
	}
	return "…"
}

// messagesOfThePage returns the messages of the table in docs/logs.md. A row may have several.
func messagesOfThePage(t *testing.T) (list []logged) {
	for line := range strings.Lines(readFile(t, "docs/logs.md")) {
		cells := strings.Split(line, " | ")
		level := strings.TrimPrefix(cells[0], "| ")
		if len(cells) < 3 || !slices.Contains([]string{"Debug", "Info", "Warn", "Error"}, level) {
			continue
		}
		for _, found := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cells[1], -1) {
			list = append(list, logged{level, found[1]})
		}
	}
	return list
}
