package repotest

import (
	"encoding/json"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestIndexListsEachPage: docs/README.md, from which the site has its sidebar, lists each page once,
// and README.md links to it.
func TestIndexListsEachPage(t *testing.T) {
	t.Parallel()
	index := readFile(t, "docs/README.md")
	listed := map[string]int{}
	for _, item := range regexp.MustCompile(`(?m)^- \[[^\]]+\]\(([^)]+)\)`).FindAllStringSubmatch(index, -1) {
		listed[item[1]]++
	}
	for _, file := range documents(t) {
		page, ok := strings.CutPrefix(filepath.ToSlash(file), "docs/")
		if ok && page != "README.md" && listed[page] != 1 {
			t.Errorf("docs/README.md lists %s %d times, and must list it once", page, listed[page])
		}
	}
	if len(listed) < 30 {
		t.Errorf("docs/README.md lists only %d pages", len(listed))
	}
	if !strings.Contains(readFile(t, "README.md"), "(docs/README.md)") {
		t.Error("README.md does not link to docs/README.md")
	}
}

// TestSiteIsPinned: the site is built by one release of VitePress, from any registry.
func TestSiteIsPinned(t *testing.T) {
	t.Parallel()
	var site struct {
		DevDependencies map[string]string `json:"devDependencies"`
	}
	if err := json.Unmarshal([]byte(readFile(t, "site/package.json")), &site); err != nil {
		t.Fatal(err)
	}
	if version := site.DevDependencies["vitepress"]; !regexp.MustCompile(`^\d+\.\d+\.\d+$`).MatchString(version) {
		t.Errorf("site/package.json: vitepress %q is no single release", version)
	}
	if strings.Contains(readFile(t, "site/package-lock.json"), `"resolved"`) {
		t.Error("site/package-lock.json names a registry: npm install --omit-lockfile-registry-resolved leaves it out")
	}
}

// TestPagesHaveNoTemplates: two braces outside of code are a template of the site's.
func TestPagesHaveNoTemplates(t *testing.T) {
	t.Parallel()
	code := regexp.MustCompile("(?s)```.*?```|`[^`\n]*`")
	for _, file := range documents(t) {
		if text := code.ReplaceAllString(readFile(t, file), ""); strings.Contains(text, "{{") {
			t.Errorf("%s has {{ outside of code", file)
		}
	}
}
