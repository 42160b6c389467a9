package signals

import (
	"strings"
)

// Type is the type of a metric.
type Type int

// The types of metrics.
const (
	Counter Type = iota
	Gauge
	Histogram
)

// String returns "counter", "gauge" or "histogram".
func (t Type) String() string { return [...]string{"counter", "gauge", "histogram"}[t] }

// Metric describes a metric of falldue.
type Metric struct {
	// Name is the metric's name in Prometheus, and OTel is its name in OpenTelemetry.
	Name, OTel string
	Type       Type
	// Unit is a unit of UCUM, such as s or {task}.
	Unit string
	Help string
	// Labels are the names of the labels in Prometheus. [Attribute] returns their names in OpenTelemetry.
	Labels []string
	// Buckets are the upper bounds of a histogram.
	Buckets []float64
	// Operation is the value of the attribute messaging.operation.name, which the conventions of
	// OpenTelemetry require of some metrics, or "".
	Operation string
	// State reports whether the metric describes the database. Such a metric has the same value in all processes:
	// aggregate it with max, never with sum.
	State bool
}

// Buckets of histograms: handlers and lags may last hours, statements seconds.
var (
	longBuckets  = []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600, 14400}
	shortBuckets = longBuckets[:11]
	taskBuckets  = []float64{0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000}
)

// The metrics of a process.
var (
	handlerSeconds = &Metric{Name: "falldue_handler_seconds", OTel: "messaging.process.duration", Type: Histogram, Unit: "s", Buckets: longBuckets, Operation: "process",
		Help: "How long handlers ran, by the outcome that they returned.", Labels: []string{"queue", "kind", "outcome", "error_type"}}
	workerWait = &Metric{Name: "falldue_worker_wait_seconds", OTel: "falldue.worker_wait", Type: Histogram, Unit: "s", Buckets: longBuckets,
		Help: "How long due tasks waited for a worker before their handlers began, without the time for which limits and sequences delayed the tasks.", Labels: []string{"queue", "kind"}}
	limitWait = &Metric{Name: "falldue_limit_wait_seconds", OTel: "falldue.limit_wait", Type: Histogram, Unit: "s", Buckets: longBuckets,
		Help: "How long limits and sequences delayed tasks before their handlers began. Tasks without such a delay do not count.", Labels: []string{"queue", "kind"}}
	runsTotal = &Metric{Name: "falldue_runs_total", OTel: "falldue.runs", Type: Counter, Unit: "{run}",
		Help: "Runs that ended, by the recorded outcome.", Labels: []string{"queue", "kind", "outcome"}}
	startedTotal = &Metric{Name: "falldue_started_total", OTel: "messaging.client.consumed.messages", Type: Counter, Unit: "{message}", Operation: "process",
		Help: "Runs that began.", Labels: []string{"queue", "kind"}}
	enqueuedTotal = &Metric{Name: "falldue_enqueued_total", OTel: "messaging.client.sent.messages", Type: Counter, Unit: "{message}", Operation: "enqueue",
		Help: "Tasks in enqueue calls. The count includes tasks whose transaction is rolled back later.", Labels: []string{"queue", "kind", "existed", "error_type"}}
	statementSeconds = &Metric{Name: "falldue_statement_seconds", OTel: "messaging.client.operation.duration", Type: Histogram, Unit: "s", Buckets: shortBuckets,
		Help: "How long an operation took in the database.", Labels: []string{"operation", "queue", "error_type"}}
	claimTasks = &Metric{Name: "falldue_claim_tasks", OTel: "falldue.claim.tasks", Type: Histogram, Unit: "{task}", Buckets: taskBuckets,
		Help: "Tasks in each claim.", Labels: []string{"queue"}}
	claimsRecovered = &Metric{Name: "falldue_claims_recovered_total", OTel: "falldue.claims.recovered", Type: Counter, Unit: "{task}",
		Help: "Claimed tasks that another worker had claimed before and lost, for example because that worker died.", Labels: []string{"queue"}}
	claimsLost = &Metric{Name: "falldue_claims_lost_total", OTel: "falldue.claims.lost", Type: Counter, Unit: "{task}",
		Help: "Claimed tasks that no longer belonged to the worker when it recorded their outcomes or extended their leases. Tasks that DoneTx has marked done do not count.", Labels: []string{"operation"}}
	lanes = &Metric{Name: "falldue_lanes", OTel: "falldue.lanes", Type: Gauge, Unit: "{lane}",
		Help: "Lanes, which are groups of tasks with the same delay, at the last sweep. A sweep is a poll that finds all lanes. The more lanes there are, the longer a sweep takes.", Labels: []string{"queue"}}
	troublesTotal = &Metric{Name: "falldue_troubles_total", OTel: "falldue.troubles", Type: Counter, Unit: "{failure}",
		Help: "Failures of background loops, by the class of the error.", Labels: []string{"role", "class"}}
	overtimeTotal = &Metric{Name: "falldue_overtime_total", OTel: "falldue.overtime", Type: Counter, Unit: "{run}",
		Help: "Handlers that had not returned 10 seconds after their timeout.", Labels: []string{"queue", "kind"}}
)

// The metrics of the database.
var (
	tasks = &Metric{Name: "falldue_tasks", OTel: "falldue.tasks", Type: Gauge, Unit: "{task}", State: true,
		Help: "Estimated number of tasks in each state. An estimate can be up to 90 seconds old.", Labels: []string{"queue", "kind", "state"}}
	oldestDue = &Metric{Name: "falldue_oldest_due_seconds", OTel: "falldue.oldest_due", Type: Gauge, Unit: "s", State: true,
		Help: "Longest time for which a task has been due, or 0. Only tasks that wait for a worker, or behind a dead task of their sequence, count. Tasks that a pause, a limit or another task of their sequence delays do not count.", Labels: []string{"queue", "kind"}}
	dueTasks = &Metric{Name: "falldue_due_tasks", OTel: "falldue.due_tasks", Type: Gauge, Unit: "{task}", State: true,
		Help: "Tasks that have been due for more than a second and wait for a worker, or behind a dead task of their sequence. The count stops at 1,000.", Labels: []string{"queue", "kind"}}
	unhandled = &Metric{Name: "falldue_unhandled", OTel: "falldue.unhandled", Type: Gauge, Unit: "{kind}", State: true,
		Help: "1 if tasks wait, and no live worker handles this kind in this queue.", Labels: []string{"queue", "kind"}}
	limited = &Metric{Name: "falldue_limited", OTel: "falldue.limited", Type: Gauge, Unit: "{kind}", State: true,
		Help: "1 if tasks are due, and a limit or a sequence delays all due tasks.", Labels: []string{"queue", "kind"}}
	paused = &Metric{Name: "falldue_paused", OTel: "falldue.paused", Type: Gauge, Unit: "{pause}", State: true,
		Help: "1 for each pause in effect.", Labels: []string{"subject"}}
	overrideAge = &Metric{Name: "falldue_override_age_seconds", OTel: "falldue.override_age", Type: Gauge, Unit: "s", State: true,
		Help: "Age of each policy override in effect. The label hold is 1 if the override stops retries.", Labels: []string{"subject", "hold"}}
	workersGauge = &Metric{Name: "falldue_workers", OTel: "falldue.workers", Type: Gauge, Unit: "{worker}", State: true,
		Help: "Live workers of a queue.", Labels: []string{"queue"}}
	handlersRunning = &Metric{Name: "falldue_handlers_running", OTel: "falldue.handlers.running", Type: Gauge, Unit: "{handler}", State: true,
		Help: "Running handlers of live workers.", Labels: []string{"queue"}}
	handlersLimit = &Metric{Name: "falldue_handlers_limit", OTel: "falldue.handlers.limit", Type: Gauge, Unit: "{handler}", State: true,
		Help: "Maximum number of handlers that can run concurrently on live workers.", Labels: []string{"queue"}}
	scheduleLate = &Metric{Name: "falldue_schedule_late_seconds", OTel: "falldue.schedule_late", Type: Gauge, Unit: "s", State: true,
		Help: "How long the next tick of a schedule has been due. It is 0 if the tick is not due or the schedule is paused.", Labels: []string{"schedule"}}
	sampleAge = &Metric{Name: "falldue_sample_age_seconds", OTel: "falldue.sample.age", Type: Gauge, Unit: "s", State: true,
		Help: "Age of the sample of the database that the other gauges show. The age grows while no new sample can be taken."}
	sampleSeconds = &Metric{Name: "falldue_sample_seconds", OTel: "falldue.sample.duration", Type: Gauge, Unit: "s", State: true,
		Help: "How long the computation of the last sample took."}
	sampleErrors = &Metric{Name: "falldue_sample_errors_total", OTel: "falldue.sample.errors", Type: Counter, Unit: "{failure}",
		Help: "Failures of this process to compute or read the sample."}
)

// Metrics lists all metrics: first the process's, and then the database's.
func Metrics() []*Metric {
	return []*Metric{
		handlerSeconds, workerWait, limitWait, runsTotal, startedTotal, enqueuedTotal, statementSeconds, claimTasks, claimsRecovered,
		claimsLost, lanes, troublesTotal, overtimeTotal,
		tasks, oldestDue, dueTasks, unhandled, limited, paused, overrideAge, workersGauge, handlersRunning, handlersLimit,
		scheduleLate, sampleAge, sampleSeconds, sampleErrors,
	}
}

// Sampled reports whether a [Sampler] reads the metric, rather than a [Recorder].
func (m *Metric) Sampled() bool { return m.State || m == sampleErrors }

// Attribute returns the name of a label in OpenTelemetry.
func Attribute(label string) string {
	switch label {
	case "queue":
		return "messaging.destination.name"
	case "operation":
		return "messaging.operation.name"
	case "error_type":
		return "error.type"
	}
	return "messaging.falldue." + label
}

// OfMessaging reports whether OpenTelemetry's conventions for messaging define the metric.
func (m *Metric) OfMessaging() bool { return strings.HasPrefix(m.OTel, "messaging.") }
