do release_lock(sha2(concat_ws(' ', 'falldue', database(), ?, ?), 224))
-- binds: slot, number
