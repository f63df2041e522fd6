-- Which master key seals the secrets of this platform, so that a start with another key is refused instead of failing at the first secret.
CREATE TABLE master_key (
  is_only boolean PRIMARY KEY DEFAULT true CHECK (is_only),
  key_id  text NOT NULL
);
