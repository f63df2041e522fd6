-- Factories that are being, or have been, deleted: they get no new runs. See store/closed-factory-store.ts.
CREATE TABLE closed_factories (
  factory_uid uuid PRIMARY KEY,
  closed_at   timestamptz(3) NOT NULL DEFAULT now()
);
