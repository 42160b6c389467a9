package signals_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/falldue/falldue/signals"
)

// golden lists all metrics. A new label may make many series: the line says what bounds it.
const golden = `
falldue_handler_seconds          messaging.process.duration          histogram s         queue kind outcome error_type
falldue_worker_wait_seconds      falldue.worker_wait                 histogram s         queue kind
falldue_limit_wait_seconds       falldue.limit_wait                  histogram s         queue kind
falldue_runs_total               falldue.runs                        counter   {run}     queue kind outcome
falldue_started_total            messaging.client.consumed.messages  counter   {message} queue kind
falldue_enqueued_total           messaging.client.sent.messages      counter   {message} queue kind existed error_type
falldue_statement_seconds        messaging.client.operation.duration histogram s         operation queue error_type
falldue_claim_tasks              falldue.claim.tasks                 histogram {task}    queue
falldue_claims_recovered_total   falldue.claims.recovered            counter   {task}    queue
falldue_claims_lost_total        falldue.claims.lost                 counter   {task}    operation
falldue_lanes                    falldue.lanes                       gauge     {lane}    queue
falldue_troubles_total           falldue.troubles                    counter   {failure} role class
falldue_overtime_total           falldue.overtime                    counter   {run}     queue kind
falldue_tasks                    falldue.tasks                       gauge     {task}    queue kind state
falldue_oldest_due_seconds       falldue.oldest_due                  gauge     s         queue kind
falldue_due_tasks                falldue.due_tasks                   gauge     {task}    queue kind
falldue_unhandled                falldue.unhandled                   gauge     {kind}    queue kind
falldue_limited                  falldue.limited                     gauge     {kind}    queue kind
falldue_paused                   falldue.paused                      gauge     {pause}   subject
falldue_override_age_seconds     falldue.override_age                gauge     s         subject hold
falldue_workers                  falldue.workers                     gauge     {worker}  queue
falldue_handlers_running         falldue.handlers.running            gauge     {handler} queue
falldue_handlers_limit           falldue.handlers.limit              gauge     {handler} queue
falldue_schedule_late_seconds    falldue.schedule_late               gauge     s         schedule
falldue_sample_age_seconds       falldue.sample.age                  gauge     s
falldue_sample_seconds           falldue.sample.duration             gauge     s
falldue_sample_errors_total      falldue.sample.errors               counter   {failure}
`

func TestMetricsAreListed(t *testing.T) {
	t.Parallel()
	var list strings.Builder
	list.WriteByte('\n')
	names := map[string]bool{}
	for _, m := range signals.Metrics() {
		line := fmt.Sprintf("%-32s %-35s %-9s %-9s %s", m.Name, m.OTel, m.Type, m.Unit, strings.Join(m.Labels, " "))
		list.WriteString(strings.TrimRight(line, " ") + "\n")
		if names[m.Name] || names[m.OTel] {
			t.Errorf("%s or %s is there twice", m.Name, m.OTel)
		}
		names[m.Name], names[m.OTel] = true, true
		if (m.Type == signals.Counter) != strings.HasSuffix(m.Name, "_total") {
			t.Errorf("%s is a %s", m.Name, m.Type)
		}
		if (m.Unit == "s") != strings.HasSuffix(m.Name, "_seconds") {
			t.Errorf("%s is in %s", m.Name, m.Unit)
		}
		if (m.Type == signals.Histogram) != (len(m.Buckets) > 0) || !strings.HasSuffix(m.Help, ".") {
			t.Errorf("%s has the buckets %v and the help %q", m.Name, m.Buckets, m.Help)
		}
		if m.OfMessaging() == (m.Operation == "") && m.Name != "falldue_statement_seconds" {
			t.Errorf("%s is of the operation %q", m.Name, m.Operation)
		}
		for _, label := range m.Labels {
			if !regexp.MustCompile(`^[a-z]+(\.[a-z_]+)+$`).MatchString(signals.Attribute(label)) {
				t.Errorf("%s has the attribute %s", m.Name, signals.Attribute(label))
			}
		}
	}
	page, err := os.ReadFile("../docs/observability.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range signals.Metrics() {
		labels := "" // in a cell of their own
		for i, label := range m.Labels {
			if i > 0 {
				labels += ","
			}
			labels += fmt.Sprintf(" %#q", label)
		}
		if line := fmt.Sprintf("| %#q | %#q |%s | %s |\n", m.Name, m.OTel, labels, m.Help); !strings.Contains(string(page), line) {
			t.Errorf("docs/observability.md lacks %s", line)
		}
	}
	if list.String() != golden {
		t.Errorf("the metrics are\n%s\nwant\n%s", list.String(), golden)
	}
}

// TestAlertsHaveARunbook: each alert links to a section of the page, and each section is of an alert.
func TestAlertsHaveARunbook(t *testing.T) {
	t.Parallel()
	rules, err := os.ReadFile("../grafana/falldue.rules.yml")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../docs/observability.md")
	if err != nil {
		t.Fatal(err)
	}
	alerts := regexp.MustCompile(`(?m)^ +- alert: (\w+)$`).FindAllStringSubmatch(string(rules), -1)
	links := regexp.MustCompile(`(?m)^ +runbook_url: "https://github\.com/falldue/falldue/blob/main/docs/observability\.md#([a-z]+)"$`).FindAllStringSubmatch(string(rules), -1)
	sections := regexp.MustCompile(`(?m)^### (Falldue\w+)\n\n[^#\n]`).FindAllStringSubmatch(string(page), -1)
	if len(alerts) == 0 || len(links) != len(alerts) || len(sections) != len(alerts) {
		t.Fatalf("%d alerts, %d links and %d sections", len(alerts), len(links), len(sections))
	}
	for i, alert := range alerts {
		if name := alert[1]; !strings.EqualFold(links[i][1], name) || sections[i][1] != name {
			t.Errorf("alert %s has the link %s and the section %s", name, links[i][1], sections[i][1])
		}
	}
}
