-- Who deleted agents were: what they made and executed goes on telling it.
CREATE TABLE former_agents (
  uid        uuid PRIMARY KEY,
  team_uid   uuid NOT NULL REFERENCES teams (uid) ON DELETE CASCADE,
  name       text NOT NULL,
  deleted_at timestamptz(3) NOT NULL DEFAULT now()
);
