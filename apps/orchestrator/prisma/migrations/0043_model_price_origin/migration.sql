-- Who added a version of a model's price; null: a migration, or SQL.
ALTER TABLE model_prices
  ADD COLUMN created_at      timestamptz(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
  ADD COLUMN created_by_type text,
  ADD COLUMN created_by_uid  uuid;
