-- The newest rendering of what the commands of a conversation wrote. Runs of other owners that serve the conversation have one of their own.
CREATE TABLE block_snapshots (
  conversation_uid uuid NOT NULL,
  owner_type       text NOT NULL,
  owner_uid        uuid NOT NULL,
  blob_key         text NOT NULL,
  extent           bigint NOT NULL,                -- events of all runs that it was made of; never falls
  written_at       timestamptz(3) NOT NULL DEFAULT now(),
  PRIMARY KEY (conversation_uid, owner_type, owner_uid)
);
-- By which the public API names it.
ALTER TABLE snapshots ADD COLUMN uid uuid NOT NULL DEFAULT gen_random_uuid();
