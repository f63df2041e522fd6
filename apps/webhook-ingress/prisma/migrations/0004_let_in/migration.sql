-- Several deliveries of a webhook are counted by one statement, which tells here how many of them it had room for.
ALTER TABLE rate_windows ADD COLUMN let_in integer NOT NULL DEFAULT 1;
