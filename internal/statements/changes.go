package statements

import "github.com/falldue/falldue/dialect"

// Change is a request to all workers.
type Change struct {
	Subject string
	What    string
	Value   string
	Ends    int64 // 0 is never
	Who     string
	Why     string
}

// The requests of changes.
const (
	ChangePause       = "pause"
	ChangeResume      = "resume"
	ChangeCancel      = "cancel"
	ChangePolicy      = "policy"
	ChangeClearPolicy = "clear policy"
)

// StoredChange is a change as [ReadChanges] returns it.
type StoredChange struct {
	Change
	ID      int64
	Created int64
	Now     int64 // by the database's clock
}

// ChangeColumns are the columns of a change, and the parameters of [PutChange].
var ChangeColumns = Columns[Change]{
	col("subject", Text, func(c *Change) any { return &c.Subject }),
	col("what", Text, func(c *Change) any { return &c.What }),
	col("value", Text, func(c *Change) any { return &c.Value }),
	col("ends_at", Moment, func(c *Change) any { return &c.Ends }),
	col("who", Text, func(c *Change) any { return &c.Who }),
	col("why", Text, func(c *Change) any { return &c.Why }),
}

// StoredChangeColumns are the columns of a result of [ReadChanges].
var StoredChangeColumns = join(
	within(ChangeColumns, func(c *StoredChange) *Change { return &c.Change }),
	Columns[StoredChange]{
		col("id", Int, func(c *StoredChange) any { return &c.ID }),
		col("created_at", Moment, func(c *StoredChange) any { return &c.Created }),
		col("clock", Moment, func(c *StoredChange) any { return &c.Now }),
	})

// PutChange stores a change. Its parameters have the names of [ChangeColumns].
func PutChange(s dialect.Server, tables dialect.Tables) Stmt {
	return newBuilder(s, tables).stmt(`
insert into {changes} (created_at, subject, what, value, ends_at, who, why)
values ({now}, :subject, :what, :value, {moment {int :ends_at}}, :who, :why)`)
}

// Topic returns the topic of a change: the pauses of a subject, or its policies. Of all changes with
// the same topic, only the newest is in effect. Topic returns "" for a cancel, which has no topic.
func (c Change) Topic() string {
	switch c.What {
	case ChangePause, ChangeResume:
		return ChangePause + " " + c.Subject
	case ChangePolicy, ChangeClearPolicy:
		return ChangePolicy + " " + c.Subject
	}
	return ""
}

// ReadChanges selects the changes of the last :back microseconds, oldest first, as
// [StoredChangeColumns].
func ReadChanges(s dialect.Server, tables dialect.Tables) Stmt {
	b := newBuilder(s, tables)
	b.set("change", StoredChangeColumns.list("", map[string]string{"clock": "{now}"}))
	return b.stmt(`
select {change} from {changes}
where created_at > {shift {now}, -({int :back})}
order by created_at, id`)
}

// DropCancels deletes the cancels that are older than :age microseconds, which all workers
// have read.
func DropCancels(s dialect.Server, tables dialect.Tables) Stmt {
	return newBuilder(s, tables).stmt(`
delete from {changes} where what = 'cancel' and created_at <= {shift {now}, -({int :age})}`)
}

// DroppedChangeColumns are the columns of the batch of [DropChanges].
var DroppedChangeColumns = Columns[int64]{col("id", Int, func(id *int64) any { return id })}

// DropChanges deletes the changes of a batch. It has [DroppedChangeColumns].
func DropChanges(s dialect.Server, tables dialect.Tables, size int) Stmt {
	b := newBuilder(s, tables)
	source := b.withBatch(DroppedChangeColumns.columns(), size)
	b.setKeys(source, "id")
	b.set("table", "{changes}")
	return b.stmt(source.delete())
}
