select cast(h.holder as char) from (select is_used_lock(sha2(concat_ws(' ', 'falldue', database(), ?, 1), 224)) as holder union all select is_used_lock(sha2(concat_ws(' ', 'falldue', database(), ?, 2), 224))) h where h.holder is not null order by 1
-- binds: slot, slot
