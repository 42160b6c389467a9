package statements

import "github.com/falldue/falldue/dialect"

// Deed is something that a person has done.
type Deed struct {
	Who     string
	Why     string
	Action  string
	Target  string
	Changed int64 // how many tasks, schedules, pauses or policies
}

// StoredDeed is a deed as [ReadAudit] returns it.
type StoredDeed struct {
	Deed
	ID      int64
	Created int64
}

// DeedColumns are the columns of a deed, and the parameters of [PutDeed].
var DeedColumns = Columns[Deed]{
	col("who", Text, func(d *Deed) any { return &d.Who }),
	col("why", Text, func(d *Deed) any { return &d.Why }),
	col("action", Text, func(d *Deed) any { return &d.Action }),
	col("target", Text, func(d *Deed) any { return &d.Target }),
	col("changed", Int, func(d *Deed) any { return &d.Changed }),
}

// StoredDeedColumns are the columns of a result of [ReadAudit].
var StoredDeedColumns = join(
	within(DeedColumns, func(d *StoredDeed) *Deed { return &d.Deed }),
	Columns[StoredDeed]{
		col("id", Int, func(d *StoredDeed) any { return &d.ID }),
		col("created_at", Moment, func(d *StoredDeed) any { return &d.Created }),
	})

// PutDeed stores a deed. Its parameters have the names of [DeedColumns].
func PutDeed(s dialect.Server, tables dialect.Tables) Stmt {
	return newBuilder(s, tables).stmt(`
insert into {audit} (created_at, who, why, action, target, changed)
values ({now}, :who, :why, :action, :target, :changed)`)
}

// ReadAudit selects the last :limit deeds, newest first, as [StoredDeedColumns].
func ReadAudit(s dialect.Server, tables dialect.Tables) Stmt {
	b := newBuilder(s, tables)
	b.set("deed", StoredDeedColumns.list("", nil))
	return b.stmt(`
select {deed} from {audit} order by created_at desc, id desc limit :limit`)
}

// DropAudit deletes the deeds that are older than :age microseconds.
func DropAudit(s dialect.Server, tables dialect.Tables) Stmt {
	return newBuilder(s, tables).stmt(`
delete from {audit} where created_at <= {shift {now}, -({int :age})}`)
}
