// Package build tells which release of a program runs, and which release of falldue is in it.
package build

import (
	"os"
	"runtime/debug"
)

// library is the path of falldue's module.
const library = "github.com/falldue/falldue"

// revisionLength is the number of digits of a revision that people look at.
const revisionLength = 12

// Release returns the version of the program's module, or else the revision that it was built
// from. It is "" for a program without that information.
func Release() string { return of(releaseOf) }

// Library returns the version of falldue in the program, or "".
func Library() string { return of(libraryOf) }

// Origin names this process: its host, and its release unless that is "".
func Origin(release string) string {
	text, _ := os.Hostname()
	if release != "" {
		text += " " + release
	}
	return text
}

func of(part func(*debug.BuildInfo) string) string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	return part(info)
}

func releaseOf(info *debug.BuildInfo) string {
	release, revision, modified := info.Main.Version, "", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			revision = s.Value[:min(len(s.Value), revisionLength)]
		case s.Key == "vcs.modified" && s.Value == "true":
			modified = "+dirty"
		}
	}
	if (release == "" || release == "(devel)") && revision != "" {
		return revision + modified
	}
	return release
}

func libraryOf(info *debug.BuildInfo) string {
	if info.Main.Path == library {
		return info.Main.Version
	}
	for _, m := range info.Deps {
		if m.Path == library {
			return m.Version
		}
	}
	return ""
}
