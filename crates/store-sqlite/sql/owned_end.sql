DELETE FROM owned WHERE server = ?1 AND kind = ?2 AND value = ?3
