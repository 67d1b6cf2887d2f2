-- Who ordered a freeze, and why. A target has at most one freeze; the first one stays.
ALTER TABLE freeze ADD COLUMN person TEXT;
ALTER TABLE freeze ADD COLUMN reason TEXT;
DELETE FROM freeze AS later WHERE EXISTS (
  SELECT 1 FROM freeze AS first
  WHERE first.kind = later.kind AND first.name IS later.name
    AND (first.created < later.created OR (first.created = later.created AND first.id < later.id))
);
CREATE UNIQUE INDEX freeze_target ON freeze (kind, coalesce(name, ''));

-- The last use of grants that are not in `grants`, because the file defines them.
CREATE TABLE grant_use (
  id TEXT PRIMARY KEY,
  at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Filters that select few rows. Partial, so that the rows of an ordinary call are in none of them.
CREATE INDEX audit_person ON audit (person) WHERE person IS NOT NULL;
CREATE INDEX audit_code ON audit (error_code) WHERE error_code IS NOT NULL;
CREATE INDEX audit_kind ON audit (kind) WHERE kind NOT IN ('intent', 'outcome', 'denied');
