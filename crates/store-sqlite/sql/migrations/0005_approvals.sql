-- Held calls and the answers of people. `live` marks the one approval that a repeated call finds: it
-- is pending, approved, or denied and not expired. The arguments are erased when it ends. `due` is
-- when the next notice about it is sent; NULL once one was delivered.
CREATE TABLE approval (
  id TEXT PRIMARY KEY,
  binding BLOB NOT NULL,
  state TEXT NOT NULL,
  live INTEGER NOT NULL,
  call_id BLOB NOT NULL,
  grant_label TEXT NOT NULL,
  identity TEXT,
  client TEXT,
  server TEXT NOT NULL,
  session_id TEXT,
  tool TEXT NOT NULL,
  fingerprint BLOB,
  digest BLOB NOT NULL,
  members TEXT NOT NULL,
  class TEXT NOT NULL,
  rule TEXT NOT NULL,
  policy TEXT,
  policy_hash BLOB,
  question TEXT NOT NULL,
  answers TEXT NOT NULL,
  created INTEGER NOT NULL,
  expires INTEGER NOT NULL,
  ended INTEGER,
  attempts INTEGER NOT NULL DEFAULT 0,
  due INTEGER,
  size INTEGER NOT NULL,
  arguments TEXT
) STRICT;
CREATE UNIQUE INDEX approval_live ON approval (binding) WHERE live = 1;
CREATE INDEX approval_expires ON approval (expires) WHERE live = 1;
CREATE INDEX approval_state ON approval (state, created, id);
CREATE INDEX approval_pending ON approval (grant_label, size) WHERE state = 'pending';
CREATE INDEX approval_due ON approval (due) WHERE due IS NOT NULL AND state = 'pending';
CREATE INDEX approval_used ON approval (grant_label, server, tool, ended) WHERE state = 'consumed';
CREATE INDEX approval_ended ON approval (ended) WHERE ended IS NOT NULL;

-- "Similar calls for an hour".
CREATE TABLE standing (
  id TEXT PRIMARY KEY,
  approval TEXT NOT NULL,
  grant_label TEXT NOT NULL,
  server TEXT NOT NULL,
  tool TEXT NOT NULL,
  fingerprint BLOB,
  policy_hash BLOB,
  kept TEXT NOT NULL,
  person TEXT NOT NULL,
  reason TEXT,
  created INTEGER NOT NULL,
  expires INTEGER NOT NULL
) STRICT;

-- Grows whenever an approval is answered or expires.
ALTER TABLE state ADD COLUMN approvals INTEGER NOT NULL DEFAULT 0;
