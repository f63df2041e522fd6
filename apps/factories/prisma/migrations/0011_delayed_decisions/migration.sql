-- When is the code host asked next for what the filter of a pending decision needs?
ALTER TABLE decisions ADD COLUMN next_attempt_at timestamptz(3);
ALTER TABLE decisions
  DROP CONSTRAINT decisions_pending,
  ADD CONSTRAINT decisions_pending CHECK ((outcome = 'pending') = (num_nonnulls(request, next_attempt_at) = 1));
