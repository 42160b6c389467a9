package main

// The grid of a dashboard.
const (
	columns = 24
	height  = 8
)

// panel is a panel of both dashboards.
type panel struct {
	title, kind string
	unit        string // in Grafana's words
	wide        int    // columns
	most        int    // the end of the axis, 0 if the values decide
	red         float64
	// means explains the panel to a reader who is woken up, and advice is what to do about it.
	means, advice string
	queries       []query
}

// query is an expression with a legend.
type query struct {
	expr, legend string
	exemplars    bool
}

// chosen selects the queues and kinds that the reader has chosen.
const chosen = `@queue=~"$queue",@kind=~"$kind"`

// The expressions of annotations.
const (
	pauses    = `max by (@subject) (falldue_paused) == 1`
	overrides = `max by (@subject) (falldue_override_age_seconds) >= 0`
)

const (
	ended  = `@outcome!~"snoozed|released|cancelled"`
	failed = `@outcome=~"retried|retried_after|dead|discarded|lost"`
)

// panels lists the panels in the order of a reader's questions: whether something is wrong, where, and why.
var panels = []panel{
	{
		title: "Alerts", kind: "stat", unit: "short", wide: 4, red: 1,
		means: "How many alerts of falldue.rules.yml fire.", advice: "Open the list of alerts: each names the command that shows the cause. `falldue doctor` shows all causes.",
		queries: []query{{expr: `count(ALERTS{alertname=~"Falldue.*",alertstate="firing"}) or vector(0)`}},
	},
	{
		title: "Oldest due task", kind: "stat", unit: "s", wide: 4, red: 300,
		means: "How long the first task has waited for a worker since it fell due. Tasks that a pause, a limit or a sequence delays do not count.", advice: "Above some minutes, run `falldue overdue`, and add workers or handlers.",
		queries: []query{{expr: `max(falldue_oldest_due_seconds{` + chosen + `})`}},
	},
	{
		title: "Failed runs", kind: "stat", unit: "percentunit", wide: 4, red: .5,
		means: "Share of the runs that failed within 5 minutes. Snoozed, released and cancelled runs do not count.", advice: "Run `falldue errors` to see the errors by how often they occur.",
		queries: []query{{expr: `sum(rate(falldue_runs_total{` + chosen + `,` + failed + `}[5m])) / (sum(rate(falldue_runs_total{` + chosen + `,` + ended + `}[5m])) > 0)`}},
	},
	{
		title: "Dead in 24 hours", kind: "stat", unit: "short", wide: 4, red: 1,
		means: "Tasks that failed for the last time, or that a handler discarded.", advice: "Run `falldue ls --state dead`, and `falldue retry` after you have fixed the cause.",
		queries: []query{{expr: `sum(increase(falldue_runs_total{` + chosen + `,@outcome=~"dead|discarded"}[24h]))`}},
	},
	{
		title: "Fewest workers", kind: "stat", unit: "short", wide: 4,
		means: "Workers of the queue that has the fewest, by their heartbeats.", advice: "If workers are missing, look at their pods. `falldue workers` lists those that were lost.",
		queries: []query{{expr: `min(max by (@queue) (falldue_workers{@queue=~"$queue"}))`}},
	},
	{
		title: "Age of the state", kind: "stat", unit: "s", wide: 4, red: 120,
		means: "How old the metrics of the database are. They are computed again every 15 seconds.", advice: "If the age grows, no process can read the database: look at its log, and at `falldue_sample_errors_total`.",
		queries: []query{{expr: `max(falldue_sample_age_seconds)`}},
	},
	{
		title: "Oldest due task by kind", kind: "timeseries", unit: "s", wide: 12,
		means: "How long the first task of each kind has waited for a worker.", advice: "A line that rises with the time means that nothing of the kind starts: run `falldue overdue`. One that stays high means too few handlers.",
		queries: []query{{expr: `max by (@queue, @kind) (falldue_oldest_due_seconds{` + chosen + `})`, legend: "{{@queue}} {{@kind}}"}},
	},
	{
		title: "Wait for a worker", kind: "timeseries", unit: "s", wide: 12,
		means: "How late runs began, without the time for which limits and sequences delayed them. The dots are single runs, with a link to their traces.", advice: "The graph has no value while nothing starts. If the wait grows, compare with busy handlers: the queue needs more of them.",
		queries: []query{
			{expr: `histogram_quantile(0.5, sum by (@le) (rate(falldue_worker_wait_seconds_bucket{` + chosen + `}[$__rate_interval])))`, legend: "p50"},
			{expr: `histogram_quantile(0.95, sum by (@le) (rate(falldue_worker_wait_seconds_bucket{` + chosen + `}[$__rate_interval])))`, legend: "p95"},
			{expr: `histogram_quantile(0.99, sum by (@le) (rate(falldue_worker_wait_seconds_bucket{` + chosen + `}[$__rate_interval])))`, legend: "p99", exemplars: true},
		},
	},
	{
		title: "Wait for limits", kind: "timeseries", unit: "s", wide: 12,
		means: "How long concurrency limits, rate limits and sequences delayed runs that have begun.", advice: "A long wait is what a limit is for. If the wait is too long, raise the limit, or enqueue less. `falldue why` with the ID of a task names the limit.",
		queries: []query{{expr: `histogram_quantile(0.95, sum by (@le, @kind) (rate(falldue_limit_wait_seconds_bucket{` + chosen + `}[$__rate_interval])))`, legend: "p95 {{@kind}}"}},
	},
	{
		title: "Runs by outcome", kind: "timeseries", unit: "ops", wide: 12,
		means: "Runs that ended, each second, by the outcome in the database.", advice: "Retries that succeed later are no incident. Look at dead, discarded and lost.",
		queries: []query{{expr: `sum by (@outcome) (rate(falldue_runs_total{` + chosen + `}[$__rate_interval]))`, legend: "{{@outcome}}"}},
	},
	{
		title: "Share of failed runs by kind", kind: "timeseries", unit: "percentunit", wide: 12, most: 1,
		means: "Share of each kind's runs that failed.", advice: "For a partner that is down, make retries slower with `falldue policy slow`, or stop them with `falldue policy hold`.",
		queries: []query{{expr: `sum by (@queue, @kind) (rate(falldue_runs_total{` + chosen + `,` + failed + `}[$__rate_interval])) / (sum by (@queue, @kind) (rate(falldue_runs_total{` + chosen + `,` + ended + `}[$__rate_interval])) > 0)`, legend: "{{@queue}} {{@kind}}"}},
	},
	{
		title: "Busy handlers", kind: "timeseries", unit: "percentunit", wide: 8, most: 1,
		means: "Share of the handlers of all live workers that run.", advice: "Near 100% for long, add workers or raise Concurrency, unless the database or a partner is the limit.",
		queries: []query{{expr: `max by (@queue) (falldue_handlers_running{@queue=~"$queue"}) / (max by (@queue) (falldue_handlers_limit{@queue=~"$queue"}) > 0)`, legend: "{{@queue}}"}},
	},
	{
		title: "Tasks by state", kind: "timeseries", unit: "short", wide: 8,
		means: "How many tasks the tables have: estimates, up to 90 seconds old.", advice: "A backlog that workers finish is no incident. If open tasks grow for hours, the queue gets more than it can run.",
		queries: []query{{expr: `sum by (@state) (max by (@queue, @kind, @state) (falldue_tasks{` + chosen + `}))`, legend: "{{@state}}"}},
	},
	{
		title: "Enqueued and done", kind: "timeseries", unit: "ops", wide: 8,
		means: "Tasks that enter and leave, each second. SQL inserts are not counted as enqueued.", advice: "If enqueued stays above done, the backlog grows.",
		queries: []query{
			{expr: `sum(rate(falldue_enqueued_total{` + chosen + `,@existed="false"}[$__rate_interval]))`, legend: "enqueued"},
			{expr: `sum(rate(falldue_runs_total{` + chosen + `,@outcome="done"}[$__rate_interval]))`, legend: "done"},
		},
	},
	{
		title: "Handler time, p95 by kind", kind: "timeseries", unit: "s", wide: 12,
		means: "How long handlers run.", advice: "If a kind becomes slower, open a trace of it. A handler that exceeds its timeout fails.",
		queries: []query{{expr: `histogram_quantile(0.95, sum by (@le, @kind) (rate(falldue_handler_seconds_bucket{` + chosen + `}[$__rate_interval])))`, legend: "{{@kind}}", exemplars: true}},
	},
	{
		title: "Handler time", kind: "heatmap", unit: "s", wide: 12,
		means: "Distribution of the time that handlers run.", advice: "Two bands are often two kinds: choose one of them.",
		queries: []query{{expr: `sum by (@le) (rate(falldue_handler_seconds_bucket{` + chosen + `}[$__rate_interval]))`, legend: "{{@le}}"}},
	},
	{
		title: "Dead in 24 hours by kind", kind: "table", unit: "short", wide: 8,
		means: "Kinds whose tasks failed for the last time.", advice: "Run `falldue errors` for their errors.",
		queries: []query{{expr: `topk(20, sum by (@queue, @kind) (increase(falldue_runs_total{` + chosen + `,@outcome=~"dead|discarded"}[24h])))`, legend: "{{@queue}} {{@kind}}"}},
	},
	{
		title: "Database time, p99 by operation", kind: "timeseries", unit: "s", wide: 8,
		means: "How long the database takes for the statements of workers and enqueues.", advice: "If all operations become slower, look at the database. If only sweeps do, look at the lanes.",
		queries: []query{{expr: `histogram_quantile(0.99, sum by (@le, @operation) (rate(falldue_statement_seconds_bucket[$__rate_interval])))`, legend: "{{@operation}}"}},
	},
	{
		title: "Database errors", kind: "timeseries", unit: "ops", wide: 8,
		means: "Statements and background loops that failed, each second, by the class of the error. Workers try them again.", advice: "Contention is normal under load. For other classes, read the workers' log.",
		queries: []query{
			{expr: `sum by (@operation, @error_type) (rate(falldue_statement_seconds_count{@error_type!=""}[$__rate_interval]))`, legend: "{{@operation}} {{@error_type}}"},
			{expr: `sum by (@role, @class) (rate(falldue_troubles_total[$__rate_interval]))`, legend: "{{@role}} {{@class}}"},
		},
	},
	{
		title: "Lanes", kind: "timeseries", unit: "short", wide: 8,
		means: "Groups of tasks with equal delays. Sweeps, the polls that find all lanes of a queue, take longer the more there are.", advice: "Thousands of lanes come from task keys or priorities with many values: see docs/scaling.md.",
		queries: []query{{expr: `max by (@queue) (falldue_lanes{@queue=~"$queue"})`, legend: "{{@queue}}"}},
	},
	{
		title: "Lost and recovered claims", kind: "timeseries", unit: "short", wide: 8,
		means: "Tasks whose worker died, or could not reach the database for the length of a lease, in 5 minutes.", advice: "Look for workers that were killed. Give them time to stop: Kubernetes' terminationGracePeriodSeconds.",
		queries: []query{
			{expr: `sum(increase(falldue_claims_recovered_total{@queue=~"$queue"}[5m]))`, legend: "recovered"},
			{expr: `sum by (@operation) (increase(falldue_claims_lost_total[5m]))`, legend: "lost ({{@operation}})"},
			{expr: `sum by (@kind) (increase(falldue_overtime_total{` + chosen + `}[5m]))`, legend: "stuck {{@kind}}"},
		},
	},
	{
		title: "Workers by queue", kind: "timeseries", unit: "short", wide: 8,
		means: "Live workers of each queue.", advice: "A queue without workers that has tasks raises FalldueNoWorker.",
		queries: []query{{expr: `max by (@queue) (falldue_workers{@queue=~"$queue"})`, legend: "{{@queue}}"}},
	},
	{
		title: "Late schedules", kind: "table", unit: "s", wide: 12,
		means: "Schedules whose next tick is due.", advice: "Run `falldue schedules`. Ticks need a worker that runs package periodic.",
		queries: []query{{expr: `topk(20, max by (@schedule) (falldue_schedule_late_seconds))`, legend: "{{@schedule}}"}},
	},
	{
		title: "Kinds that wait", kind: "table", unit: "short", wide: 12,
		means: "Kinds whose due tasks a limit or a sequence delays (1), or that no worker handles (2).", advice: "For a limit, run `falldue why` with the ID of a task. For a missing worker, deploy one that handles the kind.",
		queries: []query{{expr: `max by (@queue, @kind) (falldue_limited{` + chosen + `}) + 2 * max by (@queue, @kind) (falldue_unhandled{` + chosen + `})`, legend: "{{@queue}} {{@kind}}"}},
	},
}
