SELECT space, key, json FROM kept WHERE space = ?1 ORDER BY key
