-- Which task does a build have an automation continue, and how often lately?
ALTER TABLE decisions ADD COLUMN built_task_uid uuid;
CREATE INDEX decisions_of_builds ON decisions (factory_uid, built_task_uid, decided_at) WHERE built_task_uid IS NOT NULL;
