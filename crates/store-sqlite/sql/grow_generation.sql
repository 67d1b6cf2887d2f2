UPDATE state SET generation = generation + 1 WHERE id = 1
