UPDATE grants SET revoked = coalesce(revoked, ?2) WHERE id = ?1
