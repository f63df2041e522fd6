-- Whose access to the model provider a call used; NULL for calls of before and for models that need none.
ALTER TABLE usage_rows ADD COLUMN access text;
