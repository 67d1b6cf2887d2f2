-- A call that begins and ends soon is open in the rows of the audit alone; `open` has those that go
-- on for longer, or wait for a leg.

-- Processes that have admitted calls: those of their calls that are open, and not in `open`, stand
-- at `since` or later.
CREATE TABLE owner (
  id INTEGER PRIMARY KEY,
  since INTEGER NOT NULL
) STRICT;

-- Whose intents are: those from `first` on, up to the next span.
CREATE TABLE span (
  first INTEGER PRIMARY KEY,
  owner INTEGER NOT NULL
) STRICT;

-- The rows of one call, up to row `told` of the audit; those after it are few. Written for many
-- calls at once.
CREATE TABLE story (
  call_id BLOB NOT NULL,
  seq INTEGER NOT NULL,
  PRIMARY KEY (call_id, seq)
) STRICT, WITHOUT ROWID;
INSERT INTO story (call_id, seq) SELECT call_id, seq FROM audit WHERE call_id IS NOT NULL ORDER BY call_id, seq;
DROP INDEX audit_call;
ALTER TABLE state ADD COLUMN told INTEGER NOT NULL DEFAULT 0;
UPDATE state SET told = coalesce((SELECT max(seq) FROM audit), 0);
