UPDATE state SET mark = max(mark, ?1) WHERE id = 1
