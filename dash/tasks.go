package dash

import (
	"cmp"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/ops"
)

// pageSize is the number of tasks of a page.
const pageSize = 50

// filterFields are the parameters of a list that select tasks.
var filterFields = []string{"queue", "kind", "key", "state", "phase", "older", "newer", "match"}

// parseFilter returns the filter of parameters.
func parseFilter(v url.Values) (f ops.Filter, err error) {
	f = ops.Filter{Queue: v.Get("queue"), Kind: v.Get("kind"), Key: v.Get("key"), State: falldue.State(v.Get("state")), Phase: falldue.Phase(v.Get("phase")), Match: v.Get("match")}
	for name, age := range map[string]*time.Duration{"older": &f.OlderThan, "newer": &f.NewerThan} {
		if text := v.Get(name); text != "" {
			if *age, err = ops.ParseDuration(text); err != nil {
				return f, mistake(name + " " + strconv.Quote(text) + " is not a duration such as 90s, 2h or 3d")
			}
		}
	}
	return f, f.Err()
}

// parseList returns the filter and the page of encoded parameters.
func parseList(query string) (f ops.Filter, list ops.ListOptions, err error) {
	v, err := url.ParseQuery(query)
	if err != nil {
		return f, list, mistake(err.Error())
	}
	if f, err = parseFilter(v); err != nil {
		return f, list, err
	}
	list = ops.ListOptions{Limit: pageSize, Newest: v.Get("order") != "oldest", Quick: true}
	if after := v.Get("after"); after != "" {
		if list.After, err = strconv.ParseInt(after, 10, 64); err != nil || list.After < 0 {
			return f, list, mistake("after " + strconv.Quote(after) + " is not a task ID")
		}
	}
	return f, list, nil
}

// tasksView is what the list of tasks shows.
type tasksView struct {
	reading[ops.Page]
	Policies ops.Policies
	Fields   map[string]string
	Chips    []chip
	Oldest   bool // the order
	Next     string
	First    string // the first page, if this is another one
	Queues   []string
	Kinds    []string
	Trouble  *trouble
	// Filtered reports whether there is a filter, so that all matching tasks can be changed.
	Filtered, Finished, Unfinished bool
	Target                         Target
}

// chip is one condition of the filter, with a link to the list without that condition.
type chip struct{ Name, Value, Without string }

func tasksPage(in *request) (page, error) {
	if text := strings.TrimSpace(in.query.Get("match")); text != "" {
		if id, err := strconv.ParseInt(strings.TrimPrefix(text, "#"), 10, 64); err == nil && len(in.query) == 1 { // of the search field
			return taskPageOf(in, id)
		}
		if !in.allowed(ViewPayload, Target{}) {
			return page{}, mistake("You do not have permission to search in payloads. Enter the ID of a task.")
		}
	}
	query := url.Values{}
	for _, name := range append([]string{"order", "after"}, filterFields...) {
		if value := strings.TrimSpace(in.query.Get(name)); value != "" {
			query.Set(name, value)
		}
	}
	f, list, err := parseList(query.Encode())
	if err != nil {
		return page{}, err
	}
	ctx := in.r.Context()
	v := tasksView{Fields: map[string]string{}, Oldest: !list.Newest, Filtered: f != (ops.Filter{}), Target: Target{Queue: f.Queue, Kind: f.Kind, Bulk: true}}
	var pulse reading[ops.Pulse]
	together(func() { v.reading = in.h.reads.tasks.get(ctx, query.Encode()) }, func() { pulse = in.h.reads.pulse.get(ctx) })
	v.Trouble, v.Policies = troubleOf(v.Err), pulse.Value.Policies
	state := cmp.Or(string(f.State), string(f.Phase))
	v.Finished = state == string(falldue.StateDead) || state == string(falldue.StateCancelled) || state == string(falldue.StateDone)
	v.Unfinished = !v.Finished
	for _, name := range filterFields {
		value := query.Get(name)
		if v.Fields[name] = value; value != "" {
			without := url.Values{}
			for other := range query {
				if other != name && other != "after" {
					without.Set(other, query.Get(other))
				}
			}
			word := value
			if name == "phase" || name == "state" {
				word = phaseWord(falldue.Phase(value))
			}
			v.Chips = append(v.Chips, chip{name, word, "tasks" + question(without)})
		}
	}
	if v.Value.More {
		next := clone(query)
		next.Set("after", strconv.FormatInt(v.Value.Next, 10))
		v.Next = "tasks" + question(next)
	}
	if list.After != 0 {
		first := clone(query)
		first.Del("after")
		v.First = "tasks" + question(first)
	}
	v.Queues, v.Kinds = names(pulse.Value)
	return page{Title: "Tasks", Nav: "tasks", Live: list.After == 0, Regions: []region{
		{ID: "filter", Template: "filter", Data: v, Fixed: true},
		{ID: "tasks", Template: "tasks", Data: v},
	}}, nil
}

// Bulk returns the link to change all tasks that match.
func (v tasksView) Bulk(do string) string {
	params := []string{"do", do}
	for _, name := range filterFields {
		params = append(params, name, v.Fields[name])
	}
	return link("bulk", params...)
}

// Order returns the link to the list in the other order.
func (v tasksView) Order() string {
	params := []string{}
	for _, name := range filterFields {
		params = append(params, name, v.Fields[name])
	}
	if !v.Oldest {
		params = append(params, "order", "oldest")
	}
	return link("tasks", params...)
}

// When returns the time that matters for a task, and its meaning.
func (v tasksView) When(t falldue.TaskInfo) (w when) {
	switch t.Phase {
	case falldue.PhaseRunning:
		return when{"since", t.AttemptedAt, t.Now}
	case falldue.PhaseDone, falldue.PhaseDead, falldue.PhaseCancelled:
		return when{"", t.UpdatedAt, t.Now}
	case falldue.PhaseBlocked, falldue.PhaseUnknownPolicy:
		return when{"created", t.CreatedAt, t.Now}
	}
	if due := v.Policies.Due(t); !due.IsZero() && t.Policy == "" {
		return when{"due", due, t.Now}
	}
	return when{"created", t.CreatedAt, t.Now}
}

// when is a time with its meaning.
type when struct {
	What   string
	T, Now time.Time
}

func clone(v url.Values) url.Values {
	c := url.Values{}
	for name := range v {
		c.Set(name, v.Get(name))
	}
	return c
}

func question(v url.Values) string {
	if len(v) == 0 {
		return ""
	}
	return "?" + v.Encode()
}

// names returns the names of queues and kinds that tasks have.
func names(p ops.Pulse) (queues, kinds []string) {
	for _, q := range p.Queues {
		queues = append(queues, q.Name)
		kinds = append(kinds, q.Kinds...)
	}
	for _, w := range p.Workers {
		kinds = append(kinds, sorted(w.Kinds)...)
	}
	return unique(queues), unique(kinds)
}

// phaseWords are the phases as people read them.
var phaseWords = map[falldue.Phase]string{
	falldue.PhaseBackingOff: "backing off", falldue.PhaseUnknownPolicy: "unknown policy", "open": "waiting or running", "snoozed": "snoozed",
}

func phaseWord(p falldue.Phase) string {
	return cmp.Or(phaseWords[p], string(p))
}

// phaseList are the phases that the filter offers.
var phaseList = []falldue.Phase{
	falldue.PhaseDue, falldue.PhaseRunning, falldue.PhaseBackingOff, falldue.PhaseScheduled, falldue.PhaseSnoozed, falldue.PhasePaused, falldue.PhaseLimited,
	falldue.PhaseBlocked, falldue.PhaseUnknownPolicy, falldue.PhaseDead, falldue.PhaseCancelled, falldue.PhaseDone,
}

// Phases are the phases that the filter offers.
func (v tasksView) Phases() []falldue.Phase { return phaseList }

// waitText formats a wait that may be drawn from a range.
func waitText(shortest, longest time.Duration) string {
	if from, to := durText(shortest), durText(longest); from != to {
		return from + " – " + to
	}
	return durText(shortest)
}
