package control

import (
	"maps"
	"slices"
	"sync"

	"github.com/falldue/falldue/internal/retry"
	"github.com/falldue/falldue/internal/storable"
	"github.com/falldue/falldue/internal/store"
)

const (
	// maxReported is the greatest number of overrides, of pauses, and of policies that a worker
	// announces because it cannot apply or read them.
	maxReported = 20
	// maxApplied is the greatest number of overrides that a worker announces because it applies them.
	maxApplied = 100
	// maxTrouble is the greatest length of an announced error, in bytes.
	maxTrouble = 500
	// unreadAfter is after how many failed reads of the table of changes a worker announces the failure.
	unreadAfter = 2
)

// HealthReport lists the overrides that a worker applies, the pauses, overrides and policies that it
// cannot apply, the handlers that ignore their timeout, and the limits that count no task. The worker announces the
// report, so that operators need not read the worker's log.
type HealthReport struct {
	Changed chan struct{} // signalled when the report has changed

	mu       sync.Mutex
	refused  []store.Refusal
	applied  map[string]int64
	policies map[string]string
	pauses   map[string]string
	overtime map[string]string
	unused   map[string]string
	unread   string
}

// NewHealthReport returns an empty report.
func NewHealthReport() *HealthReport { return &HealthReport{Changed: make(chan struct{}, 1)} }

// apply sets which overrides of policies the worker applies, and which it cannot apply.
func (t *HealthReport) apply(applied map[string]int64, list []store.Refusal) {
	list = list[:min(len(list), maxReported)]
	for i := range list {
		list[i].Error = shortened(list[i].Error)
	}
	t.mu.Lock()
	changed := !slices.Equal(t.refused, list) || !maps.Equal(t.applied, applied)
	t.refused, t.applied = list, applied
	t.mu.Unlock()
	if changed {
		retry.Signal(t.Changed)
	}
}

// unreadable sets why the worker cannot read the table of changes, or nil.
func (t *HealthReport) unreadable(err error) {
	text := ""
	if err != nil {
		text = shortened(err.Error())
	}
	t.mu.Lock()
	changed := t.unread != text
	t.unread = text
	t.mu.Unlock()
	if changed {
		retry.Signal(t.Changed)
	}
}

// skip sets which per-task policies the worker cannot read, by their keys, and why.
func (t *HealthReport) skip(policies map[string]error) {
	t.replace(&t.policies, textsOf(policies))
}

// refusePauses sets which pauses the worker cannot apply, by their subjects, and why.
func (t *HealthReport) refusePauses(pauses map[string]error) {
	t.replace(&t.pauses, textsOf(pauses))
}

// Overtime sets which handlers have not returned although their timeout has passed, by their kinds.
func (t *HealthReport) Overtime(kinds map[string]string) {
	t.replace(&t.overtime, kinds)
}

// UnusedLimits sets which limits per key have counted no task, by their owners.
func (t *HealthReport) UnusedLimits(owners map[string]string) {
	t.replace(&t.unused, owners)
}

// textsOf returns the texts of errors.
func textsOf(errs map[string]error) map[string]string {
	texts := make(map[string]string, len(errs))
	for name, err := range errs {
		texts[name] = err.Error()
	}
	return texts
}

// replace sets one of the maps of t to the first texts.
func (t *HealthReport) replace(announced *map[string]string, list map[string]string) {
	texts := make(map[string]string, len(list))
	for _, name := range slices.Sorted(maps.Keys(list))[:min(len(list), maxReported)] {
		texts[name] = shortened(list[name])
	}
	t.mu.Lock()
	changed := !maps.Equal(*announced, texts)
	*announced = texts
	t.mu.Unlock()
	if changed {
		retry.Signal(t.Changed)
	}
}

// shortened returns the text of an error as it is announced.
func shortened(text string) string { return storable.Text(text[:min(len(text), maxTrouble)]) }

// AddTo adds the report to the worker's announcement.
func (t *HealthReport) AddTo(info *store.WorkerInfo) {
	t.mu.Lock()
	defer t.mu.Unlock()
	info.Applied, info.Refused, info.Policies, info.RefusedPauses, info.Overtime, info.UnusedLimits, info.Unread = t.applied, t.refused, t.policies, t.pauses, t.overtime, t.unused, t.unread
}
