-- Connections to GitLab.
ALTER TABLE code_hosts DROP CONSTRAINT code_hosts_kind;
ALTER TABLE code_hosts ADD CONSTRAINT code_hosts_kind CHECK (kind IN ('github', 'gitlab', 'local'));
