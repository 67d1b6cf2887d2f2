-- Times are whole microseconds since 1970. Amounts are exact decimals as text.

-- The audit. Append-only; `seq` from 1 without gaps; `hash` covers every other column and the row
-- before. Kept as columns, so that people can ask it in SQL.
CREATE TABLE audit (
  seq INTEGER PRIMARY KEY,
  v INTEGER NOT NULL,
  time INTEGER NOT NULL,
  kind TEXT NOT NULL,
  call_id BLOB,
  method TEXT,
  grant TEXT,
  identity TEXT,
  person TEXT,
  agent_session TEXT,
  client TEXT,
  via TEXT,
  server TEXT,
  session_id TEXT,
  tool TEXT,
  fingerprint BLOB,
  risk TEXT,
  decision TEXT,
  error_code TEXT,
  rule TEXT,
  policy TEXT,
  policy_version INTEGER,
  policy_hash BLOB,
  argument_keys TEXT,
  arguments TEXT,
  counters TEXT,
  approval_id TEXT,
  outcome TEXT,
  effect TEXT,
  upstream_ms INTEGER,
  total_ms INTEGER,
  message TEXT,
  count INTEGER,
  hash BLOB NOT NULL
) STRICT;

-- The rows of one call. Ids sort by time, so the index grows at its end.
CREATE INDEX audit_call ON audit (call_id) WHERE call_id IS NOT NULL;

CREATE TABLE checkpoint (
  seq INTEGER PRIMARY KEY,
  hash BLOB NOT NULL,
  time INTEGER NOT NULL,
  signature BLOB NOT NULL
) STRICT;

-- One row: the clock's high-water mark, and the number that grows with every change.
CREATE TABLE state (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  mark INTEGER NOT NULL,
  generation INTEGER NOT NULL
) STRICT;
INSERT INTO state (id, mark, generation) VALUES (1, -9223372036854775808, 0);

-- Calendar counters: what is used in the window that begins at `start`.
CREATE TABLE counter (
  key TEXT PRIMARY KEY,
  start INTEGER NOT NULL,
  until INTEGER NOT NULL,
  used TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Sliding counters: one row for each share that was taken.
CREATE TABLE sliding (
  key TEXT NOT NULL,
  at INTEGER NOT NULL,
  call_id BLOB NOT NULL,
  until INTEGER NOT NULL,
  amount TEXT NOT NULL,
  PRIMARY KEY (key, at, call_id)
) STRICT, WITHOUT ROWID;

-- When a call was last admitted, for repeats.
CREATE TABLE seen (
  key TEXT PRIMARY KEY,
  at INTEGER NOT NULL,
  within INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Calls that were admitted and have not ended, with the process that will end them. `waits` is
-- since when a call waits for its next leg; any process may go on with it.
CREATE TABLE open (
  call_id BLOB PRIMARY KEY,
  owner INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  waits INTEGER
) STRICT, WITHOUT ROWID;

-- Calls in flight that a limit counts.
CREATE TABLE flight (
  key TEXT NOT NULL,
  call_id BLOB NOT NULL,
  PRIMARY KEY (key, call_id)
) STRICT, WITHOUT ROWID;

-- Whose an id is. `grants` is a JSON list of labels.
CREATE TABLE owned (
  server TEXT NOT NULL,
  kind TEXT NOT NULL,
  value TEXT NOT NULL,
  grants TEXT NOT NULL,
  identity TEXT,
  until INTEGER NOT NULL,
  PRIMARY KEY (server, kind, value)
) STRICT, WITHOUT ROWID;

CREATE TABLE grants (
  id TEXT PRIMARY KEY,
  label TEXT NOT NULL UNIQUE,
  token BLOB NOT NULL,
  identity TEXT,
  groups TEXT NOT NULL,
  servers TEXT,
  sessions TEXT,
  policy TEXT,
  created INTEGER NOT NULL,
  expires INTEGER,
  last_use INTEGER,
  revoked INTEGER
) STRICT, WITHOUT ROWID;

CREATE TABLE people (
  id TEXT PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  token BLOB NOT NULL,
  roles TEXT NOT NULL,
  groups TEXT NOT NULL,
  created INTEGER NOT NULL,
  expires INTEGER,
  revoked INTEGER
) STRICT, WITHOUT ROWID;

-- Every version of every policy; `removed` marks names that are gone.
CREATE TABLE policy (
  name TEXT NOT NULL,
  version INTEGER NOT NULL,
  document TEXT NOT NULL,
  created INTEGER NOT NULL,
  removed INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (name, version)
) STRICT, WITHOUT ROWID;

CREATE TABLE freeze (
  id TEXT PRIMARY KEY,
  kind TEXT NOT NULL,
  name TEXT,
  created INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Documents others want kept; nobody looks into them here.
CREATE TABLE kept (
  space TEXT NOT NULL,
  key TEXT NOT NULL,
  json TEXT NOT NULL,
  PRIMARY KEY (space, key)
) STRICT, WITHOUT ROWID;
