-- The end of the reaper's last pause. The platform was down before, so time limits of executions count from then.
ALTER TABLE reaper_ticks ADD COLUMN resumed_at timestamptz NOT NULL DEFAULT 'epoch';

-- When the lease would have expired without its extension after a pause, and when it expires with it. A renewal changes
-- expires_at only, so a lease whose expires_at is extended_to was not renewed since.
ALTER TABLE leases ADD COLUMN extended_from timestamptz, ADD COLUMN extended_to timestamptz;
