SELECT min(since) FROM owner
