insert into "falldue_changes" (created_at, subject, what, value, ends_at, who, why)
select statement_timestamp(), $1::text, 'cancel', fence::text, (timestamptz 'epoch' + (0)::float8 * interval '1 microsecond'), $2::text, $3::text from "falldue_tasks"
where id = $4 and claimed_by <> ''
-- binds: subject, who, why, id
