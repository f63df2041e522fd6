-- Texts of runs that may have a word similar to the one that `q` asks for, newest first: candidates, which the caller compares word by word. A function,
-- because the threshold of the operator is a setting; with it a word of four letters with one typo is found.
SELECT show_trgm('');
CREATE FUNCTION similar_run_texts(owners uuid[], word text, most integer) RETURNS TABLE (uid uuid, text text) LANGUAGE sql STABLE SET pg_trgm.word_similarity_threshold = 0.33 AS $$
  SELECT t.run_uid, t.text FROM run_texts t WHERE t.owner_uid = ANY(owners) AND t.text %> word ORDER BY t.created_at DESC, t.run_uid DESC LIMIT most
$$;
