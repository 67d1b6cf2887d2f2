DELETE FROM span WHERE first < (SELECT max(first) FROM span WHERE first <= (SELECT coalesce(min(since), 9223372036854775807) FROM owner))
