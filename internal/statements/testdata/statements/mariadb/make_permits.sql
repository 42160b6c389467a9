insert ignore into `falldue_permits` (name, n)
values (?, ?), (?, ?)
-- binds: name[0], n[0], name[1], n[1]
