SELECT count(*), min(created) FROM approval WHERE state = 'pending'
