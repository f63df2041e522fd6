-- What the indexes of 0032 stand for. A migration of its own: to drop one takes a stronger lock than to make one, and whoever takes the weaker first may wait in a circle.
DROP INDEX IF EXISTS runs_by_factory_state, runs_by_name_state, runs_by_model_state, runs_by_creator_state, runs_by_executor_state, runs_by_source_state, runs_by_environment_state,
  runs_by_schedule_state, runs_by_skill_state, runs_by_metadata, runs_by_tree, runs_live_by_factory;
