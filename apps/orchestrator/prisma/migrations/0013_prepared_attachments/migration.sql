-- Files that were announced for follow-ups of a run. Their bytes are uploaded to a place of their own, and copied at their first use: what an
-- agent was given cannot be changed by a late upload.
CREATE TABLE prepared_attachments (
  uid        uuid PRIMARY KEY,
  run_uid    uuid NOT NULL REFERENCES runs (uid), -- the only one whose follow-ups may name it
  file_name  text NOT NULL,
  mime_type  text NOT NULL,
  size_bytes bigint,                              -- null: not used yet
  sha256     text,
  created_at timestamptz(3) NOT NULL DEFAULT now()
);
CREATE INDEX prepared_attachments_by_age ON prepared_attachments (created_at);
