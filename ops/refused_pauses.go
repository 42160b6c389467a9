package ops

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/falldue/falldue/internal/words"
)

// RefusedPause is a pause that workers cannot apply, because a newer release has set the pause for a form of subject
// that these workers do not know.
type RefusedPause struct {
	// Subject is the subject of the pause, as it is stored.
	Subject string
	Error   string
	// Workers are the IDs of the workers.
	Workers []string
}

// RefusedPauses returns the pauses that live workers cannot apply, sorted by their subjects. Each pause has the IDs of
// the workers that cannot apply it.
func RefusedPauses(workers []Worker) (list []RefusedPause) {
	for _, w := range workers {
		if !w.Live() {
			continue
		}
		for subject, text := range w.RefusedPauses {
			n := slices.IndexFunc(list, func(p RefusedPause) bool { return p.Subject == subject && p.Error == text })
			if n < 0 {
				list, n = append(list, RefusedPause{Subject: subject, Error: text}), len(list)
			}
			list[n].Workers = append(list[n].Workers, w.ID)
		}
	}
	slices.SortFunc(list, func(a, b RefusedPause) int {
		return cmp.Or(cmp.Compare(a.Subject, b.Subject), cmp.Compare(a.Error, b.Error))
	})
	return list
}

// String names the workers that cannot apply the pause, and the reason.
func (p RefusedPause) String() string {
	return fmt.Sprintf("%s cannot apply the pause of %s, so its tasks still run there (%s): %s", words.Count(int64(len(p.Workers)), "worker"), p.Subject, words.Names(p.Workers), p.Error)
}
