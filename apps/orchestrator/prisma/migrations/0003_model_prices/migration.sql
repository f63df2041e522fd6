-- List prices as the providers publish them, where one price holds for every request: models priced by the length of the
-- prompt have none here, so their cost stays unknown. A cache write is one of five minutes.
INSERT INTO model_prices (model_id, version, input_per_million_micros, output_per_million_micros, cache_read_per_million_micros, cache_write_per_million_micros) VALUES
  ('claude-opus-5-5',   1, 4000000, 20000000, 200000, 5000000),
  ('claude-sonnet-5-5', 1, 2000000, 10000000, 200000, 2500000),
  ('claude-opus-4-5',   1, 5000000, 25000000, 500000, 6250000),
  ('claude-sonnet-4-5', 1, 3000000, 15000000, 300000, 3750000),
  ('claude-haiku-4-5',  1, 1000000,  5000000, 100000, 1250000),
  ('gpt-5.1',           1, 1250000, 10000000, 125000, NULL),
  ('gpt-5-mini',        1,  250000,  2000000,  25000, NULL);
