package backoff

import "time"

// Zizq is the default policy of this library: a delay of 15s + n^4, a jitter of
// 30s * n, and 25 retries.
//
// Source: Zizq, Backoff & Retry Policies, sections Backoff Policy Structure and
// Zizq Defaults.
func Zizq() Policy { return fromPreset("zizq") }

// Sidekiq is the default of Sidekiq 8: a delay of (n - 1)^4 + 15s, a jitter of
// 10s * n, and 25 retries.
//
// Source: Sidekiq, lib/sidekiq/job_retry.rb, delay_for.
func Sidekiq() Policy { return fromPreset("sidekiq") }

// Cenkalti is the default of cenkalti/backoff: an interval from 500
// milliseconds, which grows by a factor of 1.5 up to 1 minute, plus or minus
// half of it, for 15 minutes.
//
// Source: cenkalti/backoff v4, exponential.go, NextBackOff.
func Cenkalti() Policy { return fromPreset("cenkalti") }

// PubSub doubles the wait from min to max. Both are at most 10 minutes. The
// documentation of Pub/Sub does not name the factor by which the wait grows: 2 is
// an assumption.
//
// Source: How does the exponential backoff configured in Google Pub/Sub's
// RetryPolicy work?, Stack Overflow; Pub/Sub reference, RetryPolicy.
func PubSub(min, max time.Duration) Policy { return fromPreset("pubsub", min, max) }

// River is the default of River: n^4 plus or minus a tenth of it, and 25
// attempts.
//
// Source: River, DefaultClientRetryPolicy.
func River() Policy { return fromPreset("river") }

// Oban is the default of Oban: 15s + 2^n and up to a tenth more, and 20
// attempts.
//
// Source: Oban, Oban.Worker, backoff/1; Oban.Backoff.
func Oban() Policy { return fromPreset("oban") }

// Asynq is the default of asynq: a delay of (n - 1)^4 + 15s, a jitter of
// 29s * n, and 25 retries.
//
// Source: asynq, server.go, DefaultRetryDelayFunc.
func Asynq() Policy { return fromPreset("asynq") }

// Faktory is the default of Faktory: a delay of (n - 1)^4 + 15s, a jitter of
// 29s * n, and 25 retries.
//
// Source: Faktory, manager/retry.go, nextRetry.
func Faktory() Policy { return fromPreset("faktory") }

// GraphileWorker is the default of Graphile Worker: e^n seconds up to e^10,
// about six hours, and 25 attempts.
//
// Source: Graphile Worker, Exponential backoff.
func GraphileWorker() Policy { return fromPreset("graphile_worker") }

// DBScheduler is the exponential backoff of db-scheduler: initial, which grows
// by a factor of 1.5.
//
// Source: db-scheduler, FailureHandler.ExponentialBackoffFailureHandler.
func DBScheduler(initial time.Duration) Policy { return fromPreset("db_scheduler", initial) }

// Celery is retry_backoff of Celery with its defaults: from 0 to a limit that
// doubles from 1 second up to 10 minutes, and 4 attempts.
//
// Source: Celery, Tasks, section Automatic retry for known exceptions;
// celery/utils/time.py, get_exponential_backoff_interval.
func Celery() Policy { return fromPreset("celery") }

// ActiveJob is polynomially_longer of Active Job: a delay of n^4 + 2s, a jitter
// of 0.15 * n^4, and 5 attempts.
//
// Source: Ruby on Rails, ActiveJob::Exceptions, retry_on.
func ActiveJob() Policy { return fromPreset("activejob") }

// GRPC is the connection backoff of gRPC: 1 second, then 1.6^(n - 1) seconds up
// to 2 minutes, plus or minus a fifth.
//
// Source: gRPC, doc/connection-backoff.md.
func GRPC() Policy { return fromPreset("grpc") }
