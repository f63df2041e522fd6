-- Slots that were decided long ago, to be deleted: they lie together, so that a summary of pages will do.
CREATE INDEX slots_by_decision ON slots USING brin (decided_at) WITH (autosummarize = on);
