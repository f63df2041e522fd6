-- Which version of the current run did whoever set the stage know? A later event of an earlier version does not change the stage.
ALTER TABLE tasks ADD COLUMN stage_basis jsonb;
