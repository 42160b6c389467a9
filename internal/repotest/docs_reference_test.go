package repotest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/migrations"
	"github.com/falldue/falldue/periodic"
	"github.com/falldue/falldue/sealed"
	"github.com/falldue/falldue/steps"
)

// TestErrorsPageHasEachError: the page has a row for each exported error of the public packages,
// with the beginning of its text.
func TestErrorsPageHasEachError(t *testing.T) {
	t.Parallel()
	page := readFile(t, "docs/errors.md")
	texts := map[string]error{
		"falldue.ErrLeaseLost": falldue.ErrLeaseLost, "falldue.ErrCancelled": falldue.ErrCancelled, "falldue.ErrTimeout": falldue.ErrTimeout,
		"falldue.ErrStopping": falldue.ErrStopping, "falldue.ErrNotCommitted": falldue.ErrNotCommitted, "falldue.ErrStuck": falldue.ErrStuck, "falldue.ErrNotFound": falldue.ErrNotFound,
		"falldue.ErrWrongState": falldue.ErrWrongState, "falldue.ErrRunning": falldue.ErrRunning, "falldue.ErrNoResult": falldue.ErrNoResult,
		"falldue.ErrInvalid": falldue.ErrInvalid, "falldue.ErrNotMigrated": falldue.ErrNotMigrated, "falldue.ErrExists": falldue.ErrExists,
		"dialect.ErrUnsupported": dialect.ErrUnsupported, "dialect.ErrTransactionPooling": dialect.ErrTransactionPooling,
		"migrations.ErrNewer": migrations.ErrNewer, "migrations.ErrForeign": migrations.ErrForeign, "migrations.ErrLockLost": migrations.ErrLockLost,
		"migrations.ErrFormat": migrations.ErrFormat, "sealed.ErrUnknownKey": sealed.ErrUnknownKey, "periodic.ErrTaken": periodic.ErrTaken,
		"steps.ErrChanged": steps.ErrChanged, "steps.ErrNotCommitted": steps.ErrNotCommitted,
	}
	for _, name := range exportedErrors(t) {
		err, ok := texts[name]
		if !ok {
			t.Errorf("%s is not in this test", name)
			continue
		}
		row := regexp.MustCompile("(?m)^\\| `" + regexp.QuoteMeta(name) + "` \\| `([^`]*)` \\|").FindStringSubmatch(page)
		if row == nil {
			t.Errorf("docs/errors.md has no row for %s", name)
			continue
		}
		if text := strings.Trim(row[1], "… "); !strings.Contains(err.Error(), text) || len(text) < 10 {
			t.Errorf("docs/errors.md: the text of %s is %q, and the page has %q", name, err, row[1])
		}
	}
}

// exportedErrors lists the variables Err… of the public packages.
func exportedErrors(t *testing.T) (names []string) {
	t.Helper()
	for _, folder := range []string{".", "backoff", "dialect", "flow", "migrations", "ops", "periodic", "pgnotify", "pgxqueue", "sealed", "sqlgen", "steps", "tasktest"} {
		files, err := filepath.Glob(filepath.Join(folder, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			for _, decl := range file.Decls {
				group, ok := decl.(*ast.GenDecl)
				if !ok || group.Tok != token.VAR {
					continue
				}
				for _, spec := range group.Specs {
					for _, id := range spec.(*ast.ValueSpec).Names { //nolint:forcetypeassert // of a var
						if strings.HasPrefix(id.Name, "Err") {
							names = append(names, file.Name.Name+"."+id.Name)
						}
					}
				}
			}
		}
	}
	if len(names) < 10 {
		t.Fatalf("found only %q", names)
	}
	return names
}

// TestStatesPageHasEachValue: the page has a row for each state, phase and outcome of the code.
func TestStatesPageHasEachValue(t *testing.T) {
	t.Parallel()
	_, page, _ := strings.Cut(readFile(t, "docs/states.md"), "## States")
	states, page, _ := strings.Cut(page, "## Phases")
	phases, outcomes, _ := strings.Cut(page, "## Outcomes")
	text, err := os.ReadFile("info.go")
	if err != nil {
		t.Fatal(err)
	}
	for prefix, c := range map[string]struct {
		section string
		values  []string
	}{
		"State": {states, []string{string(falldue.StateBlocked), string(falldue.StateOpen), string(falldue.StateSnoozed), string(falldue.StateDone), string(falldue.StateDead), string(falldue.StateCancelled)}},
		"Phase": {phases, []string{
			string(falldue.PhaseBlocked), string(falldue.PhaseRunning), string(falldue.PhaseDue), string(falldue.PhaseScheduled), string(falldue.PhaseBackingOff), string(falldue.PhaseSnoozed),
			string(falldue.PhasePaused), string(falldue.PhaseLimited), string(falldue.PhaseUnknownPolicy), string(falldue.PhaseDone), string(falldue.PhaseDead), string(falldue.PhaseCancelled),
		}},
		"Outcome": {outcomes, []string{
			string(falldue.OutcomeDone), string(falldue.OutcomeRetried), string(falldue.OutcomeRetriedAfter), string(falldue.OutcomeSnoozed), string(falldue.OutcomeRepeated), string(falldue.OutcomeDiscarded),
			string(falldue.OutcomeDead), string(falldue.OutcomeCancelled), string(falldue.OutcomeExpired), string(falldue.OutcomeLost), string(falldue.OutcomeReleased),
		}},
	} {
		declared := regexp.MustCompile(`(?m)^\t`+prefix+`[A-Z]\w* +(\w+ )?= ([^"\n]*"[a-z_]+"|\w[^"\n]*)`).FindAllString(string(text), -1)
		declared = slices.DeleteFunc(declared, func(line string) bool { return strings.Contains(line, "OutcomeNone") })
		if len(declared) != len(c.values) {
			t.Errorf("info.go declares %d values of %s, and this test has %d: %q", len(declared), prefix, len(c.values), declared)
		}
		for _, value := range c.values {
			if !regexp.MustCompile("(?m)^\\| .*`" + value + "`.* \\|").MatchString(c.section) {
				t.Errorf("docs/states.md has no row for the %s %s", strings.ToLower(prefix), value)
			}
		}
	}
}

// TestConfigurationPageHasEachField: the page has a row for each exported field of the configurations,
// and the row and the field's comment name the same default.
func TestConfigurationPageHasEachField(t *testing.T) {
	t.Parallel()
	sections := map[string]string{}
	for section := range strings.SplitSeq(readFile(t, "docs/configuration.md"), "\n## ") {
		name, text, _ := strings.Cut(section, "\n")
		sections[name] = text
	}
	plain := strings.NewReplacer("`", "", "[", "", "]", "", `"`, "")
	for name, file := range map[string]string{"Config": "config.go", "QueueConfig": "config.go", "KindConfig": "kind.go", "Notifications": "notifications.go"} {
		fields := exportedFields(t, file, name)
		rows := regexp.MustCompile("(?m)^\\| `(\\w+)` \\| ([^|]+) \\|").FindAllStringSubmatch(sections[name], -1)
		if len(rows) != len(fields) || len(fields) < 2 {
			t.Errorf("docs/configuration.md has %d rows for the %d fields of %s", len(rows), len(fields), name)
		}
		for _, row := range rows {
			comment, ok := fields[row[1]]
			if !ok {
				t.Errorf("docs/configuration.md has a row for %s.%s, which does not exist", name, row[1])
			} else if !regexp.MustCompile("efaults to " + regexp.QuoteMeta(plain.Replace(row[2])) + `([.:,) ]|$)([^0-9]|$)`).MatchString(plain.Replace(comment)) {
				t.Errorf("docs/configuration.md: the default of %s.%s is %q, and the field's comment is\n%s", name, row[1], row[2], comment)
			}
		}
	}
}

// exportedFields returns the comments of the exported fields of a struct, each on one line.
func exportedFields(t *testing.T, file, name string) map[string]string {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	fields := map[string]string{}
	ast.Inspect(parsed, func(n ast.Node) bool {
		spec, ok := n.(*ast.TypeSpec)
		if !ok || spec.Name.Name != name {
			return true
		}
		for _, field := range spec.Type.(*ast.StructType).Fields.List { //nolint:forcetypeassert // a configuration is a struct
			for _, id := range field.Names {
				if id.IsExported() {
					fields[id.Name] = strings.Join(strings.Fields(field.Doc.Text()), " ")
				}
			}
		}
		return false
	})
	return fields
}

// TestTablesPageHasEachColumn: the page has a section for each table of the migrations, and in it
// a row for each column, and nothing else.
func TestTablesPageHasEachColumn(t *testing.T) {
	t.Parallel()
	wanted := map[string]bool{"migrations": true} // which the migrations do not create
	for _, engine := range []string{"postgres", "mysql", "sqlite"} {
		for table, columns := range columnsOfMigrations(t, engine) {
			wanted[table] = true
			for _, column := range columns {
				wanted[table+"."+column] = true
			}
		}
	}
	described := map[string]bool{}
	for _, section := range strings.Split(readFile(t, "docs/tables.md"), "\n## ")[1:] {
		table, text, _ := strings.Cut(section, "\n")
		described[table] = true
		for _, row := range regexp.MustCompile("(?m)^\\| (`.*?`) \\|").FindAllStringSubmatch(text, -1) {
			for column := range strings.SplitSeq(strings.ReplaceAll(row[1], "`", ""), ", ") {
				described[table+"."+column] = true
			}
		}
	}
	for name := range wanted {
		if !described[name] {
			t.Errorf("docs/tables.md does not describe %s: add a row", name)
		}
	}
	for name := range described {
		if !wanted[name] {
			t.Errorf("docs/tables.md describes %s, which no migration creates", name)
		}
	}
}

// columnsOfMigrations returns the columns of each table that the migrations of an engine create or change.
func columnsOfMigrations(t *testing.T, engine string) map[string][]string {
	t.Helper()
	files, err := filepath.Glob("migrations/" + engine + "/*.sql")
	if err != nil {
		t.Fatal(err)
	}
	tables := map[string][]string{}
	for _, file := range files {
		up, _, _ := strings.Cut(readFile(t, file), "-- +goose Down")
		for _, table := range regexp.MustCompile(`(?s)create table (?:if not exists )?\{(\w+)\} \((.*?)\n\)`).FindAllStringSubmatch(up, -1) {
			for _, column := range regexp.MustCompile("(?m)^    `?(\\w+)`? ").FindAllStringSubmatch(table[2], -1) {
				if !slices.Contains([]string{"primary", "unique", "index", "key", "constraint", "check"}, column[1]) || table[1] == "policies" && column[1] == "key" {
					tables[table[1]] = append(tables[table[1]], column[1])
				}
			}
		}
		for _, column := range regexp.MustCompile("(?m)^alter table \\{(\\w+)\\} add column `?(\\w+)").FindAllStringSubmatch(up, -1) {
			tables[column[1]] = append(tables[column[1]], column[2])
		}
	}
	if len(tables) < 11 {
		t.Fatalf("found only the tables %v of %s", tables, engine)
	}
	return tables
}

// TestTroubleshootingQuotesTheLog: a line that the page quotes from the log is one of docs/logs.md.
func TestTroubleshootingQuotesTheLog(t *testing.T) {
	t.Parallel()
	logs := readFile(t, "docs/logs.md")
	quoted := regexp.MustCompile("(?m)^\\| `([^`]*)` in the log").FindAllStringSubmatch(readFile(t, "docs/troubleshooting.md"), -1)
	if len(quoted) < 5 {
		t.Errorf("found only %q", quoted)
	}
	for _, q := range quoted {
		if !strings.Contains(logs, "`"+strings.TrimRight(q[1], "… ")) {
			t.Errorf("docs/logs.md has no line that begins with %q", q[1])
		}
	}
}
