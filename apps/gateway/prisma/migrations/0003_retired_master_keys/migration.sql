-- Keys that a rotation has replaced: a service that starts with one of them is refused.
ALTER TABLE master_key ADD COLUMN retired_key_ids text[] NOT NULL DEFAULT '{}';
