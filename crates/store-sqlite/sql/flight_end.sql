DELETE FROM flight WHERE call_id = ?1
