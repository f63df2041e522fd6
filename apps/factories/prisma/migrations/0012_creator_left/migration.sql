-- The creator was removed from the team or became a viewer. Enabling or replacing the automation makes the caller its creator.
ALTER TABLE automations ADD COLUMN creator_left boolean NOT NULL DEFAULT false;
