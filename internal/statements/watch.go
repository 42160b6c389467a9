package statements

import "github.com/falldue/falldue/dialect"

// Watched is a task as a watcher of tasks sees it.
type Watched struct {
	ID        int64
	Queue     string
	Kind      string
	Key       string
	State     string
	Attempts  int
	Fence     int64
	Updated   int64
	ClaimedBy string
	LastError string // the beginning
	Now       int64  // by the database's clock
}

// WatchedColumns are the columns of a result of [WatchTasks], [WatchNew], [WatchLane] and
// [EndsOfLanes].
var WatchedColumns = Columns[Watched]{
	col("id", Int, func(w *Watched) any { return &w.ID }),
	col("queue", Text, func(w *Watched) any { return &w.Queue }),
	col("kind", Text, func(w *Watched) any { return &w.Kind }),
	col("task_key", Text, func(w *Watched) any { return &w.Key }),
	col("state", Text, func(w *Watched) any { return &w.State }),
	col("attempts", Int, func(w *Watched) any { return &w.Attempts }),
	col("fence", Int, func(w *Watched) any { return &w.Fence }),
	col("updated_at", Moment, func(w *Watched) any { return &w.Updated }),
	col("claimed_by", Text, func(w *Watched) any { return &w.ClaimedBy }),
	col("last_error", Text, func(w *Watched) any { return &w.LastError }),
	col("clock", Moment, func(w *Watched) any { return &w.Now }),
}

// watching returns a builder with the fragment {watched}, the columns of tasks t.
func watching(s dialect.Server, tables dialect.Tables) *builder {
	b := newBuilder(s, tables)
	b.set("watched", WatchedColumns.list("t.", map[string]string{
		"clock": "{now}", "claimed_by": "coalesce(rtrim(t.claimed_by), '')", "last_error": "coalesce(substr(t.last_error, 1, 500), '')",
	}))
	return b
}

// WatchTasks selects tasks as [WatchedColumns]. The batch has [IDColumns].
func WatchTasks(s dialect.Server, tables dialect.Tables, size int) Stmt {
	b := watching(s, tables)
	source := b.withBatch(IDColumns.columns(), size)
	b.setKeys(source, "id")
	if source.byKey() {
		return b.stmt(`
select {watched} from {tasks} t where {keys}`)
	}
	return b.stmt(`
select {watched} from {batch} join {tasks} t on {same key}`)
}

// WatchNew selects up to :limit tasks after the ID :after as [WatchedColumns], in the order
// of their IDs.
func WatchNew(s dialect.Server, tables dialect.Tables) Stmt {
	return watching(s, tables).stmt(`
select {watched} from {tasks} t
where t.id > :after
order by t.id limit :limit`)
}

// WatchLane selects up to :limit tasks of a lane whose anchors are not older than :back
// microseconds, as [WatchedColumns]. Parameters: queue, the lane (see [SetLane]), back, limit.
func WatchLane(s dialect.Server, tables dialect.Tables) Stmt {
	b := watching(s, tables)
	b.setInLane(laneParam)
	return b.stmt(`
select {watched} from {tasks} t
where {in lane} and updated_at >= {shift {now}, -({int :back})}
order by updated_at limit :limit`)
}

// EndsOfLanes selects the :limit tasks of each lane of a batch whose anchors are the latest or, without newest, the
// earliest, as [WatchedColumns] and the lane's place in the batch. The batch has [QueueLaneColumns], and size lanes.
func EndsOfLanes(s dialect.Server, tables dialect.Tables, newest bool, size int) Stmt {
	b := watching(s, tables)
	b.set("order", "updated_at")
	if newest {
		b.set("order", "updated_at desc")
	}
	return b.united(QueueLaneColumns.columns(), size, `select {watched}, {place} from (select id, queue, kind, task_key, state, attempts, fence, updated_at, claimed_by, last_error from {tasks}
where {in its lane}
order by {order} limit :limit) t`)
}
