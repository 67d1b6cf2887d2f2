SELECT coalesce(max(seq), 0) FROM checkpoint
WHERE seq < coalesce((SELECT min(seq) FROM checkpoint WHERE time >= ?1), 9223372036854775807)
