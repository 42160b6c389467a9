update "falldue_tasks" set claimed_by = '' where id = $1 and state = 'cancelled'
-- binds: id
