UPDATE grants SET last_use = max(coalesce(last_use, ?2), ?2) WHERE id = ?1
