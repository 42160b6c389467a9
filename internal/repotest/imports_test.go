package repotest

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"maps"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

const module = "github.com/falldue/falldue"

// goPackage is what "go list" prints of a package.
type goPackage struct {
	ImportPath string
	Imports    []string
	Deps       []string
	Module     *struct{ Path string }
}

// goPackages returns the packages of this module and all packages that they link, by
// their import paths. It does not include imports of tests.
var goPackages = sync.OnceValues(func() (map[string]goPackage, error) {
	list := exec.Command("go", "list", "-deps", "-json=ImportPath,Imports,Deps,Module", "./...")
	out, err := list.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return nil, errors.Join(err, errors.New(string(exit.Stderr)))
	}
	if err != nil {
		return nil, err
	}
	found := map[string]goPackage{}
	for lines := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p goPackage
		if err := lines.Decode(&p); errors.Is(err, io.EOF) {
			return found, nil
		} else if err != nil {
			return nil, err
		}
		found[p.ImportPath] = p
	}
})

func listPackages(t *testing.T) map[string]goPackage {
	t.Helper()
	packages, err := goPackages()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	return packages
}

// inside returns a package's path within this module, "falldue" for the root, and
// false for a package of another module.
func inside(path string) (string, bool) {
	if path == module {
		return "falldue", true
	}
	return strings.CutPrefix(path, module+"/")
}

// layersLine returns the line of doc.go that says with arrows what may import what.
func layersLine(t *testing.T) string {
	t.Helper()
	line := regexp.MustCompile(`(?m)^//[ \t]+(\S.*←.*)$`).FindStringSubmatch(readFile(t, "doc.go"))
	if line == nil {
		t.Fatal("doc.go has no line that says with arrows what may import what")
	}
	return line[1]
}

// layers returns each package's place in that line, counted from the left. A folder
// means all packages in it.
func layers(t *testing.T) map[string]int {
	t.Helper()
	places := map[string]int{}
	for i, layer := range strings.Split(layersLine(t), "←") {
		for name := range strings.SplitSeq(strings.Trim(layer, " {}"), ",") {
			places[strings.TrimSpace(name)] = i
		}
	}
	return places
}

// place returns the place of a package in doc.go's line.
func place(places map[string]int, name string) (int, bool) {
	at, ok := places[name]
	if !ok {
		folder, _, _ := strings.Cut(name, "/")
		at, ok = places[folder]
	}
	return at, ok
}

// TestImportsGoOneWay covers every package. A package without a place in the line
// of doc.go is for tests and programs if it is internal, and else imports none
// that has a place.
func TestImportsGoOneWay(t *testing.T) {
	t.Parallel()
	places := layers(t)
	programs := slices.Max(slices.Collect(maps.Values(places)))
	for importPath, p := range listPackages(t) {
		name, ours := inside(importPath)
		if !ours {
			continue
		}
		at, placed := place(places, name)
		for _, imported := range p.Imports {
			other, ours := inside(imported)
			if !ours {
				continue
			}
			otherAt, otherPlaced := place(places, other)
			switch {
			case !placed && otherPlaced && !strings.HasPrefix(name, "internal/"):
				t.Errorf("%s imports %s, and has no place in the line of doc.go", name, other)
			case placed && !otherPlaced && at != programs:
				t.Errorf("%s imports %s, which is for programs and tests", name, other)
			case placed && otherPlaced && otherAt >= at:
				t.Errorf("%s imports %s, against the direction of doc.go", name, other)
			}
		}
	}
}

// mostUsesBack is how many uses may run back in the engine. Code has none, see [TestImportsGoOneWay].
const mostUsesBack = 12

// TestUsesThatRunBack counts the uses of a package by the engine's packages to its left in the line of
// doc.go, in tests, too.
func TestUsesThatRunBack(t *testing.T) {
	t.Parallel()
	places := layers(t)
	var back []string
	for _, file := range sourceFiles(t) {
		name := path.Dir(file)
		at, placed := place(places, name)
		if !placed || !strings.HasPrefix(name, "internal/") {
			continue
		}
		set := token.NewFileSet()
		tree, err := parser.ParseFile(set, file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		right := map[string]bool{} // the names of packages to the right
		for _, spec := range tree.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			other, ours := inside(imported)
			if otherAt, placed := place(places, other); ours && placed && other != name && otherAt >= at {
				right[path.Base(imported)] = true
				if spec.Name != nil {
					right[spec.Name.Name] = true
				}
			}
		}
		ast.Inspect(tree, func(n ast.Node) bool {
			if use, ok := n.(*ast.SelectorExpr); ok {
				if of, ok := use.X.(*ast.Ident); ok && right[of.Name] {
					back = append(back, set.Position(use.Pos()).String()+": "+of.Name+"."+use.Sel.Name)
				}
			}
			return true
		})
	}
	t.Logf("%d uses run back", len(back))
	if len(back) > mostUsesBack {
		t.Errorf("%d uses run back, more than %d:\n\t%s", len(back), mostUsesBack, strings.Join(back, "\n\t"))
	}
}

// TestTheEngineTakesNarrowInterfaces: only the package that makes a worker of its parts knows the type
// of the store.
func TestTheEngineTakesNarrowInterfaces(t *testing.T) {
	t.Parallel()
	for _, file := range sourceFiles(t) {
		switch path.Dir(file) {
		case "internal/control", "internal/lease", "internal/news", "internal/steplog", "internal/run", "internal/claim", "internal/upkeep":
			if !strings.HasSuffix(file, "_test.go") && strings.Contains(readFile(t, file), "*store.Store") {
				t.Errorf("%s names *store.Store; declare an interface with the methods that it needs", file)
			}
		}
	}
}

// The modules that the packages of the library link into a program. Drivers are up to
// the program: it links pgx or lib/pq only if it imports them or the package for them. The
// command line, SQLite and modules for tests must not be among them.
var (
	linkedByMigrations = []string{
		"github.com/mfridman/interpolate", "github.com/pressly/goose/v3", "github.com/sethvargo/go-retry",
		"go.uber.org/multierr", "golang.org/x/sync",
	}
	linkedByRoot = append([]string{"github.com/jmoiron/sqlx"}, linkedByMigrations...)

	linkedByPgx = append([]string{"github.com/jackc/pgx/v5", "github.com/jackc/pgpassfile", "github.com/jackc/pgservicefile", "github.com/jackc/puddle/v2", "golang.org/x/text"}, linkedByRoot...)

	linked = map[string][]string{
		"dialect":             nil,
		"sqlgen":              nil,
		"backoff":             nil,
		"backoff/policyflags": nil,
		"migrations":          linkedByMigrations,
		"falldue":             linkedByRoot,
		"queuetest":           linkedByRoot,
		"tasktest":            linkedByRoot,
		"sealed":              linkedByRoot,
		"ops":                 linkedByRoot,
		"periodic":            linkedByRoot,
		"flow":                linkedByRoot,
		"many":                linkedByRoot,
		"steps":               linkedByRoot,
		"dash":                linkedByRoot,
		"signals":             linkedByRoot,
		"pgnotify":            {"github.com/lib/pq"},
		"pgxqueue":            linkedByPgx,
	}
)

func TestPackagesLinkOnlyListedModules(t *testing.T) {
	t.Parallel()
	places := layers(t)
	programs := slices.Max(slices.Collect(maps.Values(places)))
	for importPath, p := range listPackages(t) {
		name, ours := inside(importPath)
		if at, _ := place(places, name); !ours || at == programs || strings.HasPrefix(name, "internal/") {
			continue
		}
		want, listed := linked[name]
		if !listed {
			t.Errorf("package %s belongs to the library; list in this test which modules it may link", name)
			continue
		}
		if name != "queuetest" && name != "tasktest" && slices.Contains(p.Deps, "testing") {
			t.Errorf("%s links package testing, which is for tests", name)
		}
		var got []string
		for _, dep := range p.Deps {
			if m := listPackages(t)[dep].Module; m != nil && m.Path != module {
				got = append(got, m.Path)
			}
		}
		slices.Sort(got)
		got = slices.Compact(got)
		if want = slices.Sorted(slices.Values(want)); !slices.Equal(got, want) {
			t.Errorf("%s links\n\t%s\nwant\n\t%s", name, strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
		}
	}
}

// sourceFiles returns the Go files of all modules of the repository.
func sourceFiles(t *testing.T) (files []string) {
	t.Helper()
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != ".":
			if d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") {
				return fs.SkipDir
			}
		case filepath.Ext(path) == ".go":
			files = append(files, filepath.ToSlash(path))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// statement matches SQL in a string of Go. Statements that are composed of parts match
// by their first words.
var statement = regexp.MustCompile(`(?is)\bselect\s.*\bfrom\b|\binsert\s+(ignore\s+)?into\b|\bupdate\s+\S+\s.*\bset\b|\bdelete\s+from\b|\b(create|alter|drop)\s+(table|index)\b`)

func TestStatementsAreMadeInOnePlace(t *testing.T) {
	t.Parallel()
	exempt := []string{
		"sqlgen/", "dialect/", "migrations/", "internal/statements/", // the one place
		"examples/",             // applications, with tables of their own
		"internal/demo/",        // drops the tables of examples
		"queuetest/",            // the same: what its handlers do in their transactions
		"internal/signalstest/", // stands for another worker
		"faults/",               // reads tables itself, so as not to trust what it checks
		"internal/testdb/",      // makes and drops databases
		"bench/",                // measures other queues, and plain SQL
	}
	for _, file := range sourceFiles(t) {
		if strings.HasSuffix(file, "_test.go") || slices.ContainsFunc(exempt, func(folder string) bool { return strings.HasPrefix(file, folder) }) {
			continue
		}
		set := token.NewFileSet()
		tree, err := parser.ParseFile(set, file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(tree, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				if text, err := strconv.Unquote(lit.Value); err == nil && statement.MatchString(text) {
					t.Errorf("%s: SQL outside sqlgen, dialect and migrations: %q", set.Position(lit.Pos()), text)
				}
			}
			return true
		})
	}
}

// TestStatementsAreRecognized checks that the pattern matches statements.
func TestStatementsAreRecognized(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"select id from t":                 true,
		"\n\tSELECT *\n\tFROM t":           true,
		"insert into ":                     true,
		"insert ignore into ":              true,
		"update t set a = 1":               true,
		"delete from ":                     true,
		"create table if not exists t ()":  true,
		"drop table ":                      true,
		"cannot delete finished tasks":     false,
		"the tables are up to date":        false,
		"falldue: select a queue":          false,
		"allowed are letters from a to z":  false,
		"update the tables, then set them": true, // a false match, which is accepted
	} {
		if got := statement.MatchString(text); got != want {
			t.Errorf("%q is taken for a statement: %v, want %v", text, got, want)
		}
	}
}

// TestTheShopCanBeCopied: the example and its tests import what any program may import, all but
// the file with which falldue's own suite runs them.
func TestTheShopCanBeCopied(t *testing.T) {
	t.Parallel()
	const suite = "examples/shop/main_test.go"
	files, err := filepath.Glob("examples/shop/*.go")
	if err != nil || !slices.Contains(files, filepath.FromSlash(suite)) {
		t.Fatalf("the files of the shop are %v, without %s; error %v", files, suite, err)
	}
	for _, file := range files {
		if filepath.ToSlash(file) != suite && strings.Contains(readFile(t, file), module+"/internal/") {
			t.Errorf("%s imports an internal package; only %s may", file, suite)
		}
	}
}

// TestCodeDoesNotAskForEngineNames: a difference between engines is a method of Dialect
// or a field of Caps.
func TestCodeDoesNotAskForEngineNames(t *testing.T) {
	t.Parallel()
	name := regexp.MustCompile(`\bdialect\.(Postgres|MySQL|MariaDB|SQLite|TiDB)\b`)
	for text, want := range map[string]bool{"if s.Name() == dialect.Postgres {": true, "case dialect.TiDB:": true, "dialect.PostgresLike": false} {
		if name.MatchString(text) != want {
			t.Errorf("%q names an engine: %v, want %v", text, !want, want)
		}
	}
	for _, file := range sourceFiles(t) {
		// The fault suite kills servers, each in its own way.
		if strings.HasSuffix(file, "_test.go") || strings.HasPrefix(file, "faults/") {
			continue
		}
		text := readFile(t, file)
		if strings.HasPrefix(text, "// Code generated ") {
			continue
		}
		for i, line := range strings.Split(text, "\n") {
			if name.MatchString(line) {
				t.Errorf("%s:%d names an engine: %s", file, i+1, strings.TrimSpace(line))
			}
		}
	}
}
