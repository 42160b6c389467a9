package repotest

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestForgeTestsOldAndNewReleases: the workflow of the public forge tests the oldest accepted release
// of each server, the ones with long support that cannot be had without images, and the newest. Its
// commands are targets of the Makefile.
func TestForgeTestsOldAndNewReleases(t *testing.T) {
	t.Parallel()
	workflow := readFile(t, ".github/workflows/test.yml")
	var images []string
	for _, image := range regexp.MustCompile(`(?m)^ +- ((?:postgres|mysql|mariadb):\S+)$`).FindAllStringSubmatch(workflow, -1) {
		images = append(images, image[1])
	}
	for _, image := range []string{"postgres:12", "postgres:18", "mysql:8.0", "mysql:8.4", "mysql:9", "mariadb:10.6", "mariadb:11.4", "mariadb:11.8"} {
		if !slices.Contains(images, image) {
			t.Errorf("the workflow does not test %s; it has %v", image, images)
		}
	}
	commands := regexp.MustCompile(`(?m)(?:^|run:) +make ([a-z-]+)$`).FindAllStringSubmatch(workflow, -1)
	for _, command := range commands {
		if !strings.Contains(readFile(t, "Makefile"), "\n"+command[1]+":") {
			t.Errorf("the Makefile has no target %s", command[1])
		}
	}
	if len(commands) < 4 {
		t.Errorf("found only %v", commands)
	}
}

// TestReleaseTagsModulesWithoutReplace: the script of releases tags each module that programs import
// or install: those without a replace directive, and the command, whose directive it removes.
func TestReleaseTagsModulesWithoutReplace(t *testing.T) {
	t.Parallel()
	script := readFile(t, ".ci/release")
	list := regexp.MustCompile(`(?m)^others=\((.*)\)$`).FindStringSubmatch(script)
	if list == nil {
		t.Fatal(".ci/release has no list of modules")
	}
	tagged := strings.Fields(list[1])
	if !slices.Contains(tagged, "cmd/falldue") {
		t.Errorf("the script tags %v, without the command", tagged)
	}
	for _, file := range moduleFiles(t) {
		folder := strings.TrimSuffix(file, "/go.mod")
		if folder == "go.mod" || strings.HasPrefix(folder, "internal/") || folder == "bench/riversqlite" {
			continue // the library; servers and comparisons, which no program imports
		}
		if free := !strings.Contains(readFile(t, file), "\nreplace "); free && !slices.Contains(tagged, folder) {
			t.Errorf("%s replaces nothing, and the script does not tag it", file)
		}
	}
}
