package repotest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// avoided are phrases that made readers stop, each with a better one.
var avoided = []struct{ phrase, better string }{
	{`(?:that|those) of`, "a noun"},
	{`at once`, "immediately, or concurrently"},
	{`(?:some|every)body|nobody`, "the actor, such as another process"},
	{`(?:of|from|to|in|on|for) whom`, "two sentences"},
	{`of which`, "two sentences"},
	{`for want of`, "without"},
	{`for ever`, "indefinitely"},
	{`little by little`, "gradually"},
	{`in place of`, "instead of"},
	{`besides?`, "alongside, or in addition to"},
	{`may not`, "must not, cannot or might not"},
	{`(?:is|are|was|were) over`, "ends or has expired"},
	{`(?:is|are) to be`, "will be, or must be"},
	{`also (?:if|by|in|when|for|among)`, "even if, or including"},
	{`polic(?:y|ies) of (?:its|their|tasks'|his|a task's) own`, "per-task policy"},
	{`obeys?|obeyed`, "apply"},
	{`hears? of|heard of|hears nothing`, "is notified of"},
	{`believes? in`, "rely on"},
	{`(?:is|are) away`, "is unavailable"},
	{`(?:(?-i:go)|goes|going|went|gone) on`, "continue"},
	{`runs? again by itself`, "is retried"},
	{`allowed (?:is|are)`, "must be"},
}

// avoidedInDocuments are phrases that documents avoid, and comments of the code still have.
var avoidedInDocuments = []struct{ phrase, better string }{
	{`, whose`, "another sentence"},
	{`says? (?:what|which|how|why)`, "names, lists or explains"},
	{`tells? (?:what|which|whether)`, "names, or reports whether"},
}

var (
	avoidedPhrase   = anyOf(`\b`, avoided)
	avoidedDocument = anyOf(``, avoidedInDocuments)
)

func anyOf(before string, phrases []struct{ phrase, better string }) *regexp.Regexp {
	var list []string
	for _, a := range phrases {
		list = append(list, a.phrase)
	}
	return regexp.MustCompile(`(?i)` + before + `(?:` + strings.Join(list, "|") + `)\b`)
}

// TestProseAvoidsPhrases: pages, comments of public packages, and texts that people see have none of
// the phrases.
func TestProseAvoidsPhrases(t *testing.T) {
	t.Parallel()
	texts := prose(t)
	if len(texts) < 1000 {
		t.Fatalf("found only %d texts", len(texts))
	}
	for _, where := range slices.Sorted(maps.Keys(texts)) {
		found := avoidedPhrase.FindAllString(texts[where], -1)
		if strings.Contains(where, ".md:") {
			found = append(found, avoidedDocument.FindAllString(texts[where], -1)...)
		}
		for _, phrase := range found {
			t.Errorf("%s: %q: write %s", where, phrase, better(phrase))
		}
	}
}

// TestProseIsChecked: each phrase is found in a text with it.
func TestProseIsChecked(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{
		"the name is that of the kind", "they run at once", "Nobody has taken it", "tasks of which it is notified", "for want of a permission", "it may not run",
		"the lease is over", "also if it fails", "a policy of its own", "workers obey the limit", "allowed are 1 to 9", "little by little",
	} {
		if found := avoidedPhrase.FindString(bad); found == "" || better(found) == "" {
			t.Errorf("%q passes", bad)
		}
	}
	for _, bad := range []string{"a driver, whose", "says what", "tells whether"} {
		if found := avoidedDocument.FindString(bad); found == "" || better(found) == "" {
			t.Errorf("%q passes in a document", bad)
		}
	}
}

func better(found string) string {
	for _, a := range slices.Concat(avoided, avoidedInDocuments) {
		if regexp.MustCompile(`(?i)^(?:` + a.phrase + `)$`).MatchString(found) {
			return a.better
		}
	}
	return ""
}

// markup matches the tags and the actions of a template.
var markup = regexp.MustCompile(`<[^>]*>|\{\{.*?\}\}`)

// unchecked are the internal packages whose comments still have some of the phrases.
var unchecked = regexp.MustCompile(`^internal/(repotest|systemtest)/`)

// prose returns the paragraphs of documents, the comments on exported names of public packages,
// the strings with words of packages that people see, and all comments of internal packages, by
// their places.
func prose(t *testing.T) map[string]string {
	t.Helper()
	texts := map[string]string{}
	code := regexp.MustCompile("(?s)```.*?\n *```|(?m:^    \\S.*$)|`[^`\n]*`|\\]\\([^)]*\\)|<!--.*?-->")
	for _, file := range documents(t) {
		if file == "CHANGELOG.md" {
			continue // a history of earlier words
		}
		text := code.ReplaceAllStringFunc(readFile(t, file), func(s string) string { return "`" + strings.Repeat("\n", strings.Count(s, "\n")) })
		line := 1
		for paragraph := range strings.SplitSeq(text, "\n\n") {
			texts[fmt.Sprintf("%s:%d", file, line)] = strings.Join(strings.Fields(paragraph), " ")
			line += strings.Count(paragraph, "\n") + 2
		}
	}
	templates, err := filepath.Glob("dash/templates/*.html")
	if err != nil || len(templates) == 0 {
		t.Fatal(templates, err)
	}
	for _, file := range templates {
		i := 0
		for line := range strings.Lines(readFile(t, file)) {
			i++
			texts[fmt.Sprintf("%s:%d", file, i)] = markup.ReplaceAllString(line, " ")
		}
	}
	for _, file := range sourceFiles(t) {
		if strings.HasSuffix(file, "_test.go") || strings.HasPrefix(file, "faults") || strings.HasPrefix(file, "bench") || unchecked.MatchString(filepath.ToSlash(file)) {
			continue
		}
		if strings.HasPrefix(filepath.ToSlash(file), "internal/") {
			collectComments(t, file, texts)
			continue
		}
		collect(t, file, texts)
	}
	return texts
}

// brokenLink matches a line with the target of a link and more, or without the target. go/doc takes it for text.
var brokenLink = regexp.MustCompile(`(?m)^\[[^\]]+\]:(?: https?://\S+ \S.*)?$`)

// collect adds the comments on exported names and the strings of a file.
func collect(t *testing.T, name string, texts map[string]string) {
	t.Helper()
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, name, nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	add := func(at token.Pos, text string) {
		texts[fmt.Sprintf("%s:%d", name, files.Position(at).Line)] += " " + strings.Join(strings.Fields(text), " ")
	}
	comment := func(group *ast.CommentGroup) {
		if group == nil {
			return
		}
		add(group.Pos(), group.Text())
		if link := brokenLink.FindString(group.Text()); link != "" {
			t.Errorf("%s: %q: write the target of a link on a line that has nothing else", files.Position(group.Pos()), link)
		}
	}
	comment(file.Doc)
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			if n.Name.IsExported() {
				comment(n.Doc)
			}
		case *ast.GenDecl:
			comment(n.Doc)
		case *ast.TypeSpec:
			comment(n.Doc)
		case *ast.Field:
			if len(n.Names) > 0 && n.Names[0].IsExported() {
				comment(n.Doc)
			}
		case *ast.BasicLit:
			if text, err := strconv.Unquote(n.Value); n.Kind == token.STRING && err == nil && strings.Contains(text, " ") {
				add(n.Pos(), text)
			}
		}
		return true
	})
}

// collectComments adds all comments of a file.
func collectComments(t *testing.T, name string, texts map[string]string) {
	t.Helper()
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, name, nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	for _, group := range file.Comments {
		texts[fmt.Sprintf("%s:%d", name, files.Position(group.Pos()).Line)] = strings.Join(strings.Fields(group.Text()), " ")
	}
}
