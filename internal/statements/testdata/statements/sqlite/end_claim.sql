update "falldue_tasks" set claimed_by = '' where id = ? and state = 'cancelled'
-- binds: id
