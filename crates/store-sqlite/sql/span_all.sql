SELECT first, owner FROM span ORDER BY first
