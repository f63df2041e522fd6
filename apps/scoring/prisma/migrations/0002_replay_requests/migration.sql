-- When an operator requested that a consumer's dead-lettered events are applied again; the consumer clears it.
ALTER TABLE stream.feed_cursors ADD COLUMN replay_requested_at timestamptz(3);
