-- The self-improvement settings that files define; null: none. Factories get those of their active definition.
ALTER TABLE factories ADD COLUMN IF NOT EXISTS self_improvement jsonb;

UPDATE factories f SET self_improvement = v.definition -> 'factory' -> 'self_improvement'
  FROM definition_versions v
  WHERE v.factory_uid = f.uid AND v.version = f.current_version
    AND v.definition -> 'factory' ? 'self_improvement';
