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
)

// TestErrorsPageHasEachError: the page has a row for each exported error of the public packages,
// with the beginning of its text.
func TestErrorsPageHasEachError(t *testing.T) {
	t.Parallel()
	page := readFile(t, "docs/errors.md")
	texts := map[string]error{
		"falldue.ErrLeaseLost": falldue.ErrLeaseLost, "falldue.ErrCancelled": falldue.ErrCancelled, "falldue.ErrTimeout": falldue.ErrTimeout,
		"falldue.ErrStopping": falldue.ErrStopping, "falldue.ErrNotCommitted": falldue.ErrNotCommitted, "falldue.ErrNotFound": falldue.ErrNotFound,
		"falldue.ErrWrongState": falldue.ErrWrongState, "falldue.ErrRunning": falldue.ErrRunning, "falldue.ErrNoResult": falldue.ErrNoResult,
		"falldue.ErrInvalid": falldue.ErrInvalid, "falldue.ErrNotMigrated": falldue.ErrNotMigrated, "falldue.ErrExists": falldue.ErrExists,
		"dialect.ErrUnsupported": dialect.ErrUnsupported, "dialect.ErrTransactionPooling": dialect.ErrTransactionPooling,
		"migrations.ErrNewer": migrations.ErrNewer, "migrations.ErrForeign": migrations.ErrForeign, "migrations.ErrLockLost": migrations.ErrLockLost,
		"migrations.ErrFormat": migrations.ErrFormat, "sealed.ErrUnknownKey": sealed.ErrUnknownKey, "periodic.ErrTaken": periodic.ErrTaken,
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
	for _, folder := range []string{".", "backoff", "dialect", "flow", "migrations", "ops", "periodic", "pgnotify", "pgxqueue", "sealed", "sqlgen", "tasktest"} {
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
			string(falldue.OutcomeDone), string(falldue.OutcomeRetried), string(falldue.OutcomeRetriedAfter), string(falldue.OutcomeSnoozed), string(falldue.OutcomeDiscarded),
			string(falldue.OutcomeDead), string(falldue.OutcomeCancelled), string(falldue.OutcomeLost), string(falldue.OutcomeReleased),
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
