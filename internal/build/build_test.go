package build

import (
	"runtime/debug"
	"testing"
)

func TestReleases(t *testing.T) {
	t.Parallel()
	vcs := []debug.BuildSetting{{Key: "vcs.revision", Value: "0123456789abcdef"}, {Key: "vcs.modified", Value: "true"}}
	for _, c := range []struct {
		build debug.BuildInfo
		want  string
	}{
		{debug.BuildInfo{Main: debug.Module{Version: "v1.2.3"}, Settings: vcs}, "v1.2.3"},
		{debug.BuildInfo{Main: debug.Module{Version: "(devel)"}, Settings: vcs}, "0123456789ab+dirty"},
		{debug.BuildInfo{Main: debug.Module{Version: "(devel)"}, Settings: vcs[:1]}, "0123456789ab"},
		{debug.BuildInfo{Main: debug.Module{Version: "(devel)"}}, "(devel)"},
		{debug.BuildInfo{}, ""},
	} {
		if got := releaseOf(&c.build); got != c.want {
			t.Errorf("the release of %+v is %q, want %q", c.build, got, c.want)
		}
	}
	deps := debug.BuildInfo{Main: debug.Module{Path: "shop"}, Deps: []*debug.Module{{Path: "other", Version: "v9.0.0"}, {Path: "github.com/falldue/falldue", Version: "v1.4.0"}}}
	if got := libraryOf(&deps); got != "v1.4.0" {
		t.Errorf("the version of falldue is %q", got)
	}
}
