-- Requests of the last minute for metrics, costs and pull requests, shared by all replicas.
-- They are not written ahead: a crash loses a minute's counts.
CREATE UNLOGGED TABLE metrics_requests (
  credential_hash text             NOT NULL,
  factory_uid     uuid             NOT NULL,
  requests        timestamptz(3)[] NOT NULL,
  expires_at      timestamptz(3)   NOT NULL,
  PRIMARY KEY (credential_hash, factory_uid)
) WITH (fillfactor = 50);
