-- Open calls that continue as a task at their server, also while no toolgate runs. Such a call stays
-- open, and in flight, until its task is known to have ended or `until` has passed.
CREATE TABLE task (
  call_id BLOB PRIMARY KEY,
  name TEXT NOT NULL,
  until INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX task_name ON task (name);
