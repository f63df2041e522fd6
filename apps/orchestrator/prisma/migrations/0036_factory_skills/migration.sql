-- Runs store a skill of a factory's definition as skills are listed: `factory/<uid>:path`. Until now they stored its path alone, which is alike in two factories.
-- The previous version continues beside it: it shows and filters by whatever is stored.
CREATE TEMPORARY TABLE renamed ON COMMIT DROP AS
  SELECT uid, 'factory/' || factory_uid || ':' AS prefix FROM runs WHERE factory_uid IS NOT NULL AND skill_spec IS NOT NULL AND strpos(skill_spec, ':') = 0;

UPDATE runs r
   SET skill_spec = n.prefix || r.skill_spec,
       agent_config = r.agent_config
         || jsonb_build_object('skill_spec', n.prefix || r.skill_spec)
         || CASE WHEN r.agent_config ? 'skills'
                 THEN jsonb_build_object('skills', (SELECT coalesce(jsonb_agg(CASE WHEN strpos(s, ':') = 0 THEN n.prefix || s ELSE s END ORDER BY nth), '[]') FROM jsonb_array_elements_text(r.agent_config->'skills') WITH ORDINALITY AS e (s, nth)))
                 ELSE '{}' END,
       agent_skill = CASE WHEN strpos(coalesce(r.agent_skill->>'full_path', ':'), ':') = 0
                          THEN r.agent_skill || jsonb_build_object('full_path', n.prefix || (r.agent_skill->>'full_path')) ELSE r.agent_skill END
  FROM renamed n WHERE n.uid = r.uid;

UPDATE run_texts t SET skill_spec = r.skill_spec, text = run_text(r.title, r.skill_spec, r.prompt) FROM runs r JOIN renamed n USING (uid) WHERE t.run_uid = r.uid;
