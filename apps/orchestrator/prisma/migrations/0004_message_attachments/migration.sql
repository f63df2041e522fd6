-- Files that come with what an agent is told. The bytes are in the blob store, under the uid.
CREATE TABLE message_attachments (
  message_uid uuid NOT NULL REFERENCES messages (uid),
  seq         integer NOT NULL,                -- order within the message
  uid         uuid NOT NULL,
  file_name   text NOT NULL,
  mime_type   text NOT NULL,
  size_bytes  bigint NOT NULL,
  sha256      text NOT NULL,
  PRIMARY KEY (message_uid, seq)
);
