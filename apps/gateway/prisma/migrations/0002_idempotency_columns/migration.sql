-- Gives idempotency_keys the columns that the table has in every service (libs/idempotency). The previous release uses
-- `principal` and `expires_at`: the trigger sets them from the new columns, and the new columns from them. A later
-- release drops both, the trigger, its function and idempotency_keys_by_principal.
ALTER TABLE idempotency_keys
  ADD COLUMN principal_uid text,
  ADD COLUMN created_at    timestamptz(3);

UPDATE idempotency_keys
   SET principal_uid = principal,
       created_at    = expires_at - interval '24 hours';

CREATE FUNCTION sync_idempotency_columns() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  NEW.principal     := coalesce(NEW.principal, NEW.principal_uid);
  NEW.principal_uid := NEW.principal;
  IF NEW.created_at IS NULL OR (TG_OP = 'UPDATE' AND NEW.expires_at <> OLD.expires_at) THEN
    NEW.created_at := NEW.expires_at - interval '24 hours';
  ELSE
    NEW.expires_at := NEW.created_at + interval '24 hours';
  END IF;
  RETURN NEW;
END
$$;

CREATE TRIGGER idempotency_keys_sync BEFORE INSERT OR UPDATE ON idempotency_keys
  FOR EACH ROW EXECUTE FUNCTION sync_idempotency_columns();

-- The primary key is the first index that an insert checks, so a conflict on it never fails as one on the other index.
ALTER TABLE idempotency_keys
  ALTER COLUMN principal_uid SET NOT NULL,
  ALTER COLUMN created_at    SET NOT NULL,
  DROP CONSTRAINT idempotency_keys_pkey,
  ADD PRIMARY KEY (principal_uid, operation, key);

CREATE UNIQUE INDEX idempotency_keys_by_principal ON idempotency_keys (principal, operation, key);
CREATE INDEX idempotency_keys_age ON idempotency_keys (created_at);
