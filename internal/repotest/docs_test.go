package repotest

import (
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestExamplesShowTheAPI requires that an example uses each exported function,
// method and variable of the root package. Methods count by their name alone.
// Methods that other packages call, such as Error, need no example.
func TestExamplesShowTheAPI(t *testing.T) {
	t.Parallel()
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	fset := token.NewFileSet()
	var files []*ast.File
	used := map[string]bool{}
	for _, name := range names {
		isTest, isExample := strings.HasSuffix(name, "_test.go"), strings.HasPrefix(name, "example")
		if isTest && !isExample {
			continue
		}
		file, err := parser.ParseFile(fset, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		if isTest {
			noteUses(file, used)
		} else {
			files = append(files, file)
		}
	}
	pkg, err := doc.NewFromFiles(fset, files, module)
	if err != nil {
		t.Fatal(err)
	}

	functions := pkg.Funcs
	var needed []string
	for _, typ := range pkg.Types {
		functions = slices.Concat(functions, typ.Funcs)
		for _, method := range typ.Methods {
			if !slices.Contains([]string{"Error", "Unwrap"}, method.Name) {
				needed = append(needed, "."+method.Name)
			}
		}
	}
	for _, function := range functions {
		needed = append(needed, "falldue."+function.Name)
	}
	for _, group := range pkg.Vars {
		for _, name := range group.Names {
			needed = append(needed, "falldue."+name)
		}
	}
	for _, name := range needed {
		if !used[name] {
			t.Errorf("no example uses %s", name)
		}
	}
	if len(needed) == 0 {
		t.Error("found no function, method or variable")
	}
}

// noteUses notes what the examples of a file use: "falldue.New" of the package,
// ".Run" of a method.
func noteUses(file *ast.File, used map[string]bool) {
	for _, decl := range file.Decls {
		example, ok := decl.(*ast.FuncDecl)
		if !ok || !strings.HasPrefix(example.Name.Name, "Example") {
			continue
		}
		ast.Inspect(example, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				if method, ok := n.Fun.(*ast.SelectorExpr); ok {
					used["."+method.Sel.Name] = true
				}
			case *ast.SelectorExpr:
				if qualifier, ok := n.X.(*ast.Ident); ok && qualifier.Name == "falldue" {
					used["falldue."+n.Sel.Name] = true
				}
			}
			return true
		})
	}
}

// TestContributingShowsTheLayers compares the line with the arrows with that of doc.go.
func TestContributingShowsTheLayers(t *testing.T) {
	t.Parallel()
	if line := layersLine(t); !strings.Contains(readFile(t, "CONTRIBUTING.md"), line) {
		t.Errorf("CONTRIBUTING.md lacks the line of doc.go: %s", line)
	}
}

// documents lists the files that people read: those of the root and of docs.
func documents(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("*.md")
	if err != nil {
		t.Fatal(err)
	}
	more, err := filepath.Glob("docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	pages, err := filepath.Glob("docs/*/*.md")
	if err != nil {
		t.Fatal(err)
	}
	return slices.Concat(files, more, pages)
}

var (
	fenced  = regexp.MustCompile("(?s)```.*?\n```\n")
	link    = regexp.MustCompile(`\]\(([^)]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
)

func TestLinksOfDocumentsResolve(t *testing.T) {
	t.Parallel()
	links := 0
	for _, file := range documents(t) {
		for _, found := range link.FindAllStringSubmatch(fenced.ReplaceAllString(readFile(t, file), ""), -1) {
			if strings.Contains(found[1], "://") {
				continue
			}
			links++
			name, anchor, _ := strings.Cut(found[1], "#")
			target := file
			if name != "" {
				target = filepath.Join(filepath.Dir(file), name)
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s links to %s: %v", file, found[1], err)
			} else if anchor != "" && !slices.Contains(anchors(readFile(t, target)), anchor) {
				t.Errorf("%s links to %s, which has no such heading", file, found[1])
			}
		}
	}
	if links == 0 {
		t.Error("no document links to any file")
	}
}

// anchors lists the headings of a document as links spell them.
func anchors(text string) (list []string) {
	for _, found := range heading.FindAllStringSubmatch(text, -1) {
		list = append(list, strings.ReplaceAll(strings.ToLower(found[1]), " ", "-"))
	}
	return list
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestTransactionsAreThoseOfTheExamples: each block of Go in docs/transactions.md is part
// of a file that is compiled.
func TestTransactionsAreThoseOfTheExamples(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("examples/transactions/*.go")
	if err != nil {
		t.Fatal(err)
	}
	requireCompiled(t, "docs/transactions.md", 5, append(files, "pgxqueue/example_test.go")...)
}

// TestMiddlewareIsThatOfTheExamples: the same for docs/middleware.md.
func TestMiddlewareIsThatOfTheExamples(t *testing.T) {
	t.Parallel()
	requireCompiled(t, "docs/middleware.md", 5, "example_middleware_test.go")
}

// TestSeveralDatabasesIsThatOfTheExample: the same for docs/several-databases.md.
func TestSeveralDatabasesIsThatOfTheExample(t *testing.T) {
	t.Parallel()
	requireCompiled(t, "docs/several-databases.md", 1, "example_databases_test.go")
}

// TestPagesAreThoseOfTheExamples: the same for the pages of features.
func TestPagesAreThoseOfTheExamples(t *testing.T) {
	t.Parallel()
	requireCompiled(t, "docs/sealed.md", 4, "sealed/example_test.go")
	requireCompiled(t, "docs/steps.md", 4, "steps/example_test.go")
	requireCompiled(t, "docs/progress.md", 3, "example_handler_test.go")
	requireCompiled(t, "docs/limits.md", 3, "example_limits_test.go")
	requireCompiled(t, "docs/configuration.md", 2, "example_limits_test.go")
	requireCompiled(t, "docs/unique.md", 1, "example_unique_test.go")
	requireCompiled(t, "docs/flow.md", 5, "flow/example_test.go")
	requireCompiled(t, "docs/periodic.md", 2, "periodic/example_test.go")
	requireCompiled(t, "docs/retention.md", 2, "example_kind_test.go")
	requireCompiled(t, "docs/manage-tasks.md", 5, "ops/example_tasks_test.go", "example_pause_test.go", "ops/example_bulk_test.go")
	requireCompiled(t, "docs/idempotent-handlers.md", 2, "example_handler_test.go")
	requireCompiled(t, "docs/many-customers.md", 1, "example_limits_test.go")
	requireCompiled(t, "docs/many-tasks.md", 4, "many/example_test.go")
	requireCompiled(t, "docs/stuck-handlers.md", 1, "example_run_test.go")
	requireCompiled(t, "docs/dashboard.md", 2, "dash/example_test.go")
	requireCompiled(t, "docs/observability.md", 8, "promfalldue/example_test.go", "otelfalldue/example_test.go", "examples/telemetry/main.go", "examples/telemetry/both_test.go", "signals/example_test.go")
	requireCompiled(t, "docs/policy-changes.md", 2, "ops/example_policy_test.go")
	requireCompiled(t, "docs/connections.md", 3, "example_new_test.go", "pgxqueue/example_test.go")
}

// requireCompiled fails the test unless each block of Go of a document is part of a file.
// The document has so many at least.
func requireCompiled(t *testing.T, document string, least int, files ...string) {
	t.Helper()
	code := ""
	for _, file := range files {
		code += readFile(t, file)
	}
	blocks := goBlocks(t, document)
	if len(blocks) < least {
		t.Errorf("%s has %d blocks of Go", document, len(blocks))
	}
	for _, block := range blocks {
		if !strings.Contains(code, block) {
			t.Errorf("no example has\n%s", block)
		}
	}
}

// goBlocks returns the blocks of Go that a document shows.
func goBlocks(t *testing.T, document string) (list []string) {
	t.Helper()
	for _, block := range regexp.MustCompile("(?s)( *)```go\n(.*?) *```\n").FindAllStringSubmatch(readFile(t, document), -1) {
		list = append(list, strings.TrimPrefix(strings.ReplaceAll("\n"+block[2], "\n"+block[1], "\n"), "\n")) // of a list
	}
	return list
}

// TestProgramsStopInContainers: a program that ends with an interrupt ends with SIGTERM, too, which
// containers are sent.
func TestProgramsStopInContainers(t *testing.T) {
	t.Parallel()
	found := 0
	for _, file := range slices.Concat(sourceFiles(t), documents(t)) {
		for line := range strings.Lines(readFile(t, file)) {
			if strings.HasPrefix(strings.TrimSpace(line), "ctx, stop := signal.NotifyContext(") && strings.Contains(line, "os.Interrupt") {
				if found++; !strings.Contains(line, "syscall.SIGTERM") {
					t.Errorf("%s: %s ignores SIGTERM", file, strings.TrimSpace(line))
				}
			}
		}
	}
	if found < 15 {
		t.Errorf("only %d programs were found", found)
	}
}
