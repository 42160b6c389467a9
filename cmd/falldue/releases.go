package main

import (
	"fmt"
	"strings"

	"github.com/falldue/falldue/ops"
)

// releasesText says in a line for each kind that workers have several policies for it, or is "".
func releasesText(list []ops.KindReleases) string {
	var b strings.Builder
	for _, k := range list {
		fmt.Fprintf(&b, "%s; the numbers use the first policy\n", policiesText(k.Kind, k.Policies))
	}
	return b.String()
}

// policiesText says which policies workers have for a kind.
func policiesText(kind string, list []ops.KindPolicy) string {
	texts := make([]string, len(list))
	for i, p := range list {
		texts[i] = fmt.Sprintf("%s of %s", p.Policy, counted(len(p.Workers), "worker"))
		if len(p.Releases) > 0 {
			texts[i] += " of " + strings.Join(p.Releases, ", ")
		}
	}
	return fmt.Sprintf("workers have %d policies for kind %s: %s", len(list), kind, strings.Join(texts, "; "))
}

// releaseJSON is a policy that some workers have for a kind, as JSON.
type releaseJSON struct {
	Kind     string   `json:"kind"`
	Policy   string   `json:"policy"`
	Workers  []string `json:"workers"`
	Releases []string `json:"releases,omitempty"`
}

func releaseObjects(list []ops.KindReleases) (objects []releaseJSON) {
	for _, k := range list {
		for _, p := range k.Policies {
			objects = append(objects, releaseJSON{k.Kind, p.Policy, p.Workers, p.Releases})
		}
	}
	return objects
}
