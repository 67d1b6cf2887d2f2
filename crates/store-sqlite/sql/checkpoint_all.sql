SELECT seq, hash, time, signature FROM checkpoint ORDER BY seq
