SELECT mark, generation, told, (SELECT owner FROM span ORDER BY first DESC LIMIT 1), audit.seq, audit.hash, checkpoint.seq, checkpoint.time, approvals
FROM state
LEFT JOIN audit ON audit.seq = (SELECT max(seq) FROM audit)
LEFT JOIN checkpoint ON checkpoint.seq = (SELECT max(seq) FROM checkpoint)
WHERE state.id = 1
