package backoff

import "time"

// Zizq returns the default policy of this library: a delay of 15s + n^4, a jitter of 30s * n, and 25 retries.
//
// Source: "Backoff & Retry Policies" in the documentation of Zizq, sections Backoff Policy Structure and Zizq
// Defaults.
func Zizq() Policy { return fromPreset("zizq") }

// Sidekiq returns the default policy of Sidekiq 8: a delay of (n - 1)^4 + 15s, a jitter of 10s * n, and 25 retries.
//
// Source: delay_for in lib/sidekiq/job_retry.rb of Sidekiq.
func Sidekiq() Policy { return fromPreset("sidekiq") }

// Cenkalti returns the default policy of cenkalti/backoff. The interval is 500 milliseconds at first and grows by a
// factor of 1.5, up to 1 minute. Each wait is the interval plus or minus up to half of it. Retries end after 15
// minutes.
//
// Source: NextBackOff in exponential.go of cenkalti/backoff v4.
func Cenkalti() Policy { return fromPreset("cenkalti") }

// PubSub returns a policy that doubles the wait from min to max, which are at most 10 minutes each. The
// documentation of Pub/Sub does not name the factor by which the wait grows: 2 is an assumption.
//
// Source: the question "How does the exponential backoff configured in Google Pub/Sub's RetryPolicy work?" on Stack
// Overflow, and RetryPolicy in the Pub/Sub reference.
func PubSub(min, max time.Duration) Policy { return fromPreset("pubsub", min, max) }

// River returns the default policy of River: a wait of n^4 seconds, plus or minus up to a tenth, and 25 attempts.
//
// Source: DefaultClientRetryPolicy of River.
func River() Policy { return fromPreset("river") }

// Oban returns the default policy of Oban: a wait of 15 + 2^n seconds, plus up to a tenth, and 20 attempts.
//
// Source: backoff/1 of Oban.Worker, and Oban.Backoff.
func Oban() Policy { return fromPreset("oban") }

// Asynq returns the default policy of asynq: a delay of (n - 1)^4 + 15s, a jitter of 29s * n, and 25 retries.
//
// Source: DefaultRetryDelayFunc in server.go of asynq.
func Asynq() Policy { return fromPreset("asynq") }

// Faktory returns the default policy of Faktory: a delay of (n - 1)^4 + 15s, a jitter of 29s * n, and 25 retries.
//
// Source: nextRetry in manager/retry.go of Faktory.
func Faktory() Policy { return fromPreset("faktory") }

// GraphileWorker returns the default policy of Graphile Worker: a wait of e^n seconds, up to e^10 seconds (about six
// hours), and 25 attempts.
//
// Source: "Exponential backoff" in the documentation of Graphile Worker.
func GraphileWorker() Policy { return fromPreset("graphile_worker") }

// DBScheduler returns the exponential backoff of db-scheduler: a wait of initial after the first failure, which
// grows by a factor of 1.5 with each further failure.
//
// Source: FailureHandler.ExponentialBackoffFailureHandler of db-scheduler.
func DBScheduler(initial time.Duration) Policy { return fromPreset("db_scheduler", initial) }

// Celery returns the policy of Celery's option retry_backoff with its defaults: a random wait from 0 to a limit, and
// 4 attempts. The limit doubles from 1 second up to 10 minutes.
//
// Source: "Automatic retry for known exceptions" in the documentation of Celery, and
// get_exponential_backoff_interval in celery/utils/time.py.
func Celery() Policy { return fromPreset("celery") }

// ActiveJob returns the policy polynomially_longer of Active Job: a delay of n^4 + 2s, a jitter of 0.15 * n^4, and 5
// attempts.
//
// Source: retry_on in ActiveJob::Exceptions of Ruby on Rails.
func ActiveJob() Policy { return fromPreset("activejob") }

// GRPC returns the backoff of gRPC's connections: a wait of 1.6^(n - 1) seconds, up to 2 minutes, plus or minus up
// to a fifth. The first wait is exactly 1 second.
//
// Source: doc/connection-backoff.md of gRPC.
func GRPC() Policy { return fromPreset("grpc") }
