-- Uploads that were announced and not committed: forgotten after a day.
CREATE INDEX artifacts_uncommitted ON artifacts (created_at) WHERE committed_at IS NULL;
-- Whose a stored file is.
CREATE INDEX message_attachments_by_uid ON message_attachments (uid);
