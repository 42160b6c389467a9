show binary logs
-- binds: 
