-- Windows that are current at the old high-water mark stay current at the new time; others have ended.
DELETE FROM counter WHERE until <= (SELECT mark FROM state);
UPDATE counter SET start = :now, until = until + :now - (SELECT mark FROM state);
UPDATE sliding SET at = at + :now - (SELECT mark FROM state), until = until + :now - (SELECT mark FROM state);
UPDATE seen SET at = at + :now - (SELECT mark FROM state);
UPDATE owned SET until = until + :now - (SELECT mark FROM state);
UPDATE approval SET expires = expires + :now - (SELECT mark FROM state) WHERE live = 1;
UPDATE approval SET due = :now WHERE due > :now;
UPDATE standing SET expires = expires + :now - (SELECT mark FROM state);
UPDATE open SET waits = :now WHERE waits IS NOT NULL;
UPDATE state SET mark = :now;
