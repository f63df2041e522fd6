-- What an agent that was deleted leaves running.
CREATE INDEX runs_live_by_agent ON runs (agent_uid) WHERE state IN ('QUEUED', 'PENDING', 'CLAIMED', 'INPROGRESS') AND agent_uid IS NOT NULL;
