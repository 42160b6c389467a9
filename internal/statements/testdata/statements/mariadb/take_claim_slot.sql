select case when get_lock(sha2(concat_ws(' ', 'falldue', database(), ?, 1), 224), 0) then 1 when get_lock(sha2(concat_ws(' ', 'falldue', database(), ?, 2), 224), 0) then 2 else 0 end
-- binds: slot, slot
