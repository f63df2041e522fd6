-- What agent programs of others have written down of their sessions themselves: the newest of each run, as announced.
CREATE TABLE harness_transcripts (
  run_uid    uuid           PRIMARY KEY,
  blob_key   text           NOT NULL,
  written_at timestamptz(3) NOT NULL DEFAULT CURRENT_TIMESTAMP
);
