package statements

import "github.com/falldue/falldue/dialect"

// A claim slot is the right to make a large claim from some lanes. Over all processes,
// two such claims may run at a time: they keep a server busy while the answer of one is
// read. More claims at the same time would step over the rows that the others have
// locked, and on PostgreSQL lock rows that another has just claimed: with many workers
// that would be most of the work. Slots are only for speed: a claim without one is as
// exclusive.
//
// The parameter slot names the lanes: an even number below 2^62.

// HasClaimSlots reports whether claims on a server can take claim slots.
func HasClaimSlots(s dialect.Server) bool {
	locks := s.Caps.Locks == dialect.AdvisoryLocks || s.Caps.Locks == dialect.NamedLocks && !ClaimsAtOnce(s)
	return locks && s.Caps.SkipLocked
}

// TakeClaimSlot takes a claim slot and returns 1 or 2, its number, or 0 where
// others hold both. A named lock is the session's, until [ReleaseClaimSlot], and
// an advisory lock the transaction's. It is for servers that have slots and whose
// claims are several statements: [Claim] takes its own. Parameters: slot.
func TakeClaimSlot(s dialect.Server) Stmt {
	b := slotBuilder(s)
	if s.Caps.Locks == dialect.AdvisoryLocks {
		return b.stmt(`
select case when pg_try_advisory_xact_lock({lock 1}) then 1 when pg_try_advisory_xact_lock({lock 2}) then 2 else 0 end`)
	}
	return b.stmt(`
select case when get_lock({lock 1}, 0) then 1 when get_lock({lock 2}, 0) then 2 else 0 end`)
}

// ReleaseClaimSlot releases a claim slot of the session, on servers with named
// locks. Parameters: slot, number.
func ReleaseClaimSlot(s dialect.Server) Stmt {
	return slotBuilder(s).stmt(`
do release_lock({lock :number})`)
}

// ClaimSlotHolders selects a text that names each holder of a claim slot, if any. On PostgreSQL, the
// text differs from claim to claim. A named lock has only the connection of its holder, which may make several
// claims. Parameters: slot.
func ClaimSlotHolders(s dialect.Server) Stmt {
	b := slotBuilder(s)
	if s.Caps.Locks == dialect.AdvisoryLocks {
		return b.stmt(`
select virtualtransaction from pg_locks where locktype = 'advisory' and granted and objsubid = 1
and database = (select oid from pg_database where datname = current_database())
and (classid::bigint << 32) + objid::bigint in ({lock 1}, {lock 2}) order by 1`)
	}
	return b.stmt(`
select cast(h.holder as char) from (select is_used_lock({lock 1}) as holder union all select is_used_lock({lock 2})) h where h.holder is not null order by 1`)
}

// slotBuilder knows the fragment {lock number}, which names the lock of a slot. An
// advisory lock has a number, as in [Claim]. A named lock has a name of at most 64
// bytes, which must differ from the names in all other databases of the server.
func slotBuilder(s dialect.Server) *builder {
	b := newBuilder(s, dialect.Tables{})
	var lock func(number string) string
	switch s.Caps.Locks {
	case dialect.AdvisoryLocks:
		lock = func(number string) string { return b.expand("{int :slot}") + " + " + number + " - 1" }
	case dialect.NamedLocks:
		lock = func(number string) string {
			return b.expand("sha2(concat_ws(' ', 'falldue', database(), :slot, ") + number + "), 224)"
		}
	default:
		panic("statements: claim slots on a server without locks")
	}
	b.set("lock", lock)
	return b
}
