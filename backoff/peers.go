package backoff

import "time"

// Zizq is the default policy: 15s + n^4, a jitter of 30s * n, 25 retries.
func Zizq() Policy { return preset("zizq") }

// Sidekiq is the default of Sidekiq 8.
func Sidekiq() Policy { return preset("sidekiq") }

// Cenkalti is the default of cenkalti/backoff: from 500 milliseconds by a
// factor of 1.5 up to a minute, half of it more or less, for 15 minutes.
func Cenkalti() Policy { return preset("cenkalti") }

// PubSub doubles from min to max, as Pub/Sub's RetryPolicy may do; both are at
// most 10 minutes.
func PubSub(min, max time.Duration) Policy { return preset("pubsub", min, max) }

// River is the default of River.
func River() Policy { return preset("river") }

// Oban is the default of Oban.
func Oban() Policy { return preset("oban") }

// Asynq is the default of asynq.
func Asynq() Policy { return preset("asynq") }

// Faktory is the default of Faktory.
func Faktory() Policy { return preset("faktory") }

// GraphileWorker is the default of Graphile Worker.
func GraphileWorker() Policy { return preset("graphile_worker") }

// DBScheduler is the exponential backoff of db-scheduler.
func DBScheduler(initial time.Duration) Policy { return preset("db_scheduler", initial) }

// Celery is Celery's retry_backoff with its defaults.
func Celery() Policy { return preset("celery") }

// ActiveJob is polynomially_longer of Active Job.
func ActiveJob() Policy { return preset("activejob") }

// GRPC is the connection backoff of gRPC.
func GRPC() Policy { return preset("grpc") }
