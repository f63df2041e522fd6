-- What became of the runs of a team, in the order of the log.
CREATE INDEX event_log_runs_by_team ON stream.event_log (team_uid, position) WHERE entity = 'run';
