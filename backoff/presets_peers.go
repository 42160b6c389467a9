package backoff

// peerPresets are the defaults of other libraries and services, for users who
// migrate from them. In each, n is the number of failures so far, 1 after the
// first; the original may count from 0. Where the original draws its jitter
// from whole numbers, it is continuous here, over the same range.
var peerPresets = []Preset{
	{
		Name:   "zizq",
		Doc:    "The default of this library. The last attempt comes after 25 days.",
		Source: "Zizq, Backoff & Retry Policies, sections Backoff Policy Structure and Zizq Defaults",
		Params: []Param{
			{Name: "base", Doc: "B, the constant part of the delay", Kind: Duration, Default: "15s", Min: 0, Max: maxWait},
			{Name: "exponent", Doc: "E, the power of n", Kind: Factor, Default: "4", Min: 0, Max: 20},
			{Name: "jitter", Doc: "J, the factor of n in the jitter", Kind: Duration, Default: "30s", Min: 0, Max: maxWait},
			{Name: "retries", Doc: "the number of retries: one less than the attempts", Kind: Count, Default: "25", Min: 0, Max: 1e9},
		},
		Delay:       "base + n^exponent",
		Jitter:      "jitter * n",
		MaxAttempts: "retries + 1",
	},
	{
		Name:        "sidekiq",
		Doc:         "The default of Sidekiq 8. The last attempt comes after 20 days.",
		Source:      "Sidekiq, lib/sidekiq/job_retry.rb, delay_for; count is n - 1",
		Delay:       "(n - 1)^4 + 15s",
		Jitter:      "10s * n",
		MaxAttempts: "26",
	},
	{
		Name:   "cenkalti",
		Doc:    "ExponentialBackOff of cenkalti/backoff. As in the original, the maximum is applied before the jitter, so a wait can be longer than max_interval.",
		Source: "cenkalti/backoff v4, exponential.go, NextBackOff; in the Pub/Sub question's ExponentialBackOff",
		Params: []Param{
			{Name: "initial", Doc: "InitialInterval", Kind: Duration, Default: "500ms", Min: 0, Max: maxWait},
			{Name: "multiplier", Doc: "Multiplier", Kind: Factor, Default: "1.5", Min: 1, Max: 100},
			{Name: "randomization", Doc: "RandomizationFactor, the largest part of the interval that is added or subtracted", Kind: Factor, Default: "0.5", Min: 0, Max: 1},
			{Name: "max_interval", Doc: "MaxInterval", Kind: Duration, Default: "60s", Min: 0, Max: maxWait},
			{Name: "max_elapsed", Doc: "MaxElapsedTime, 0 for no limit", Kind: Duration, Default: "15m", Min: 0, Max: maxWait},
		},
		Delay:      "(1 - randomization) * min(max_interval, initial * multiplier^(n - 1))",
		Jitter:     "2 * randomization * min(max_interval, initial * multiplier^(n - 1))",
		MaxElapsed: "max_elapsed",
		rules:      []rule{{"max_interval >= initial", "max_interval must be at least initial"}},
	},
	{
		Name:   "pubsub",
		Doc:    "The RetryPolicy of Google Cloud Pub/Sub. Its documentation specifies only min and max. It is an assumption that the wait doubles. The policy's randomization is not documented, and is omitted here.",
		Source: "How does the exponential backoff configured in Google Pub/Sub's RetryPolicy work?, Stack Overflow; Pub/Sub reference, RetryPolicy",
		Params: []Param{
			{Name: "min", Doc: "minimum_backoff", Kind: Duration, Default: "10s", Min: 0, Max: 600},
			{Name: "max", Doc: "maximum_backoff", Kind: Duration, Default: "600s", Min: 0, Max: 600},
			{Name: "multiplier", Doc: "the factor by which the wait grows after each failure, an assumption", Kind: Factor, Default: "2", Min: 1, Max: 100},
		},
		Delay: "min(max, min * multiplier^(n - 1))",
		rules: []rule{maxAtLeastMin},
	},
	{
		Name:        "river",
		Doc:         "The default of River: n^4, plus or minus a tenth.",
		Source:      "River, DefaultClientRetryPolicy",
		Delay:       "0.9 * n^4",
		Jitter:      "0.2 * n^4",
		MaxAttempts: "25",
	},
	{
		Name:   "oban",
		Doc:    "The default of an Oban worker. With more than 20 attempts, the curve is stretched over all attempts.",
		Source: "Oban, Oban.Worker, backoff/1; Oban.Backoff",
		Params: []Param{{Name: "attempts", Doc: "max_attempts", Kind: Count, Default: "20", Min: 1, Max: 1e6}},
		// The exponent of 2 is rounded to a whole number and is at most 20.
		Delay:       "15s + 2^floor(min(n, attempts) * (20 / max(attempts, 20)) + 0.5)",
		Jitter:      "0.1 * delay",
		MaxAttempts: "attempts",
	},
	{
		Name:        "asynq",
		Doc:         "The default of asynq: Sidekiq's formula before version 6.2.2.",
		Source:      "asynq, server.go, DefaultRetryDelayFunc; the argument there is n - 1",
		Delay:       "(n - 1)^4 + 15s",
		Jitter:      "29s * n",
		MaxAttempts: "26",
	},
	{
		Name:        "faktory",
		Doc:         "The default of Faktory: Sidekiq's formula before version 6.2.2.",
		Source:      "Faktory, manager/retry.go, nextRetry; RetryCount is n - 1",
		Delay:       "(n - 1)^4 + 15s",
		Jitter:      "29s * n",
		MaxAttempts: "26",
	},
	{
		Name:        "graphile_worker",
		Doc:         "The formula of Graphile Worker: e^n seconds up to e^10, about six hours.",
		Source:      "Graphile Worker, Exponential backoff",
		Delay:       "exp(min(n, 10))",
		MaxAttempts: "25",
	},
	{
		Name:   "db_scheduler",
		Doc:    "ExponentialBackoffFailureHandler of db-scheduler. The rate is the default of the original. The original has no default for initial: here it is the interval after which db-scheduler retries one-time tasks.",
		Source: "db-scheduler, FailureHandler.ExponentialBackoffFailureHandler; consecutiveFailures is n - 1",
		Params: []Param{
			{Name: "initial", Doc: "the wait after the first failure", Kind: Duration, Default: "5m", Min: 0, Max: maxWait},
			{Name: "rate", Doc: "the factor by which the wait grows after each failure", Kind: Factor, Default: "1.5", Min: 1, Max: 100},
		},
		Delay: "initial * rate^(n - 1)",
	},
	{
		Name:   "celery",
		Doc:    "retry_backoff of Celery with its default retry_jitter: the wait is drawn between 0 and a limit that doubles.",
		Source: "Celery, Tasks, section Automatic retry for known exceptions; celery/utils/time.py, get_exponential_backoff_interval",
		Params: []Param{
			{Name: "factor", Doc: "retry_backoff", Kind: Duration, Default: "1s", Min: 0, Max: maxWait},
			{Name: "max", Doc: "retry_backoff_max", Kind: Duration, Default: "600s", Min: 0, Max: maxWait},
		},
		Delay:       "0",
		Jitter:      "min(max, factor * 2^(n - 1))",
		MaxAttempts: "4",
	},
	{
		Name:        "activejob",
		Doc:         "wait: :polynomially_longer of Active Job, with the jitter of load_defaults 6.1 and later. As in the original, the jitter does not depend on the 2 seconds.",
		Source:      "Ruby on Rails, ActiveJob::Exceptions, retry_on",
		Delay:       "n^4 + 2s",
		Jitter:      "0.15 * n^4",
		MaxAttempts: "5",
	},
	{
		Name:   "grpc",
		Doc:    "The connection backoff of gRPC: plus or minus a fifth, except for the first wait, which has no jitter. gRPC counts the wait from the start of an attempt, this library from its end.",
		Source: "gRPC, doc/connection-backoff.md; retries is n - 1 as in grpc-go",
		Delay:  "if(n == 1, 1s, 0.8 * min(120s, 1.6^(n - 1)))",
		Jitter: "if(n == 1, 0, 0.4 * min(120s, 1.6^(n - 1)))",
	},
}
