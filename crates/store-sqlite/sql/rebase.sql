-- Windows that count at the old mark count at the new time just as much; the others are over.
DELETE FROM counter WHERE until <= (SELECT mark FROM state);
UPDATE counter SET start = :now, until = until + :now - (SELECT mark FROM state);
UPDATE sliding SET at = at + :now - (SELECT mark FROM state), until = until + :now - (SELECT mark FROM state);
UPDATE seen SET at = at + :now - (SELECT mark FROM state);
UPDATE owned SET until = until + :now - (SELECT mark FROM state);
UPDATE open SET waits = :now WHERE waits IS NOT NULL;
UPDATE state SET mark = :now;
