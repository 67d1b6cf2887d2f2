SELECT count, bytes FROM pending WHERE grant_label = ?1
