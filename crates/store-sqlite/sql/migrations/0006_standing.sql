-- What a standing exception was asked of, and the session of its tool. Exceptions of before lift what one
-- approver of any group may lift, and nothing of a session.
ALTER TABLE standing ADD COLUMN session_id TEXT;
ALTER TABLE standing ADD COLUMN question TEXT NOT NULL DEFAULT '{"approvers":[],"no_common_group":false,"people":1,"note":null}';

-- How many approvals of a grant are pending, and the bytes of their arguments: counting them anew for
-- each held call would let one grant occupy the writer.
CREATE TABLE pending (
  grant_label TEXT PRIMARY KEY,
  count INTEGER NOT NULL,
  bytes INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO pending SELECT grant_label, count(*), sum(size) FROM approval WHERE state = 'pending' GROUP BY grant_label;
DROP INDEX approval_pending;
CREATE TRIGGER approval_begins AFTER INSERT ON approval WHEN new.state = 'pending' BEGIN
  INSERT INTO pending VALUES (new.grant_label, 1, new.size)
  ON CONFLICT (grant_label) DO UPDATE SET count = count + 1, bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER approval_waits_again AFTER UPDATE OF state ON approval WHEN new.state = 'pending' AND old.state <> 'pending' BEGIN
  INSERT INTO pending VALUES (new.grant_label, 1, new.size)
  ON CONFLICT (grant_label) DO UPDATE SET count = count + 1, bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER approval_answered AFTER UPDATE OF state ON approval WHEN old.state = 'pending' AND new.state <> 'pending' BEGIN
  UPDATE pending SET count = count - 1, bytes = bytes - old.size WHERE grant_label = old.grant_label;
END;
