import { cp, mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "@jest/globals";
import { migrate } from "@millwright/database";
import { newUid } from "@millwright/ids";
import { testDatabase } from "@millwright/testing";
import { migrationsDir } from "../src/compose.ts";

type OldKey = { team: string; by: string; allTeams?: boolean };

/**
 * Migrates keys, given in the order of their creation. Returns which of them are personal after the migration, and
 * whether the account is claimed.
 */
async function upgraded({
  keys = [],
  teams = [],
  formerTeams = [],
}: {
  keys?: OldKey[];
  teams?: string[];
  formerTeams?: string[];
}) {
  const former = await mkdtemp(join(tmpdir(), "migrations-"));
  for (const name of (await readdir(migrationsDir)).filter((each) => /^000[1-5]_/.test(each)))
    await cp(join(migrationsDir, name), join(former, name), { recursive: true });
  const opened = await testDatabase(former);
  try {
    const { sql } = opened.database;
    for (const uid of [RED, BLUE]) await sql.query("INSERT INTO teams (uid, name) VALUES ($1, 'team')", [uid]);
    await sql.query("INSERT INTO users (uid, email, display_name) VALUES ($1, 'p@example.com', 'P')", [PERSON]);
    for (const team of teams)
      await sql.query("INSERT INTO memberships (team_uid, user_uid, role) VALUES ($1, $2, 'member')", [team, PERSON]);
    for (const team of formerTeams)
      await sql.query(
        `INSERT INTO audit_log (uid, team_uid, source, type, entity, entity_uid, actor_type, actor_uid, request_id, payload, occurred_at)
         VALUES ($1, $2, 'gateway', 'millwright.member.added.v1', 'member', $3, 'user', $4, 'r', '{}', now())`,
        [newUid(), team, `${team}:${PERSON}`, OWNER],
      );
    for (const [i, { team, by, allTeams = false }] of keys.entries())
      await sql.query(
        `INSERT INTO api_keys (uid, hash, prefix, name, kind, user_uid, team_uid, all_teams, created_by, created_at)
         VALUES ($1, $2::text, 'mw_', 'key', 'api', $3, $4, $5, $6, now() + $7::int * interval '1 minute')`,
        [newUid(), String(i), PERSON, team, allTeams, by, i],
      );
    await migrate(opened.url, migrationsDir);
    const personal = (
      await sql.query<{ personal: boolean }>("SELECT personal FROM api_keys ORDER BY created_at")
    ).rows.map((key) => key.personal);
    return {
      personal,
      isClaimed: (await sql.query("SELECT 1 FROM users WHERE claimed_at IS NOT NULL")).rowCount === 1,
    };
  } finally {
    await opened.close();
    await rm(former, { recursive: true });
  }
}

const [RED, BLUE, PERSON, OWNER] = [newUid(), newUid(), newUid(), newUid()];

test("an account of the previous release is claimed, also without keys and teams: a team owner cannot take it over", async () => {
  expect(await upgraded({ formerTeams: [RED] })).toEqual({ personal: [], isClaimed: true });
});

test.each<[string, Parameters<typeof upgraded>[0], boolean[]]>([
  [
    "that the person created, and no other",
    {
      teams: [RED],
      keys: [
        { team: RED, by: OWNER },
        { team: RED, by: PERSON },
      ],
    },
    [false, true],
  ],
  [
    "for all teams, and no other",
    {
      teams: [RED],
      keys: [
        { team: RED, by: OWNER },
        { team: RED, by: "gateway", allTeams: true },
      ],
    },
    [false, true],
  ],
  [
    "that is the oldest of a person in one team",
    {
      teams: [RED],
      formerTeams: [RED],
      keys: [
        { team: RED, by: OWNER },
        { team: RED, by: OWNER },
      ],
    },
    [true, false],
  ],
  ["of a person in two teams: none", { teams: [RED, BLUE], keys: [{ team: RED, by: OWNER }] }, [false]],
  [
    "of a person with keys in two teams: none",
    {
      teams: [RED],
      keys: [
        { team: RED, by: OWNER },
        { team: BLUE, by: OWNER },
      ],
    },
    [false, false],
  ],
  [
    "of a person who left another team: none",
    { teams: [RED], formerTeams: [BLUE, RED], keys: [{ team: RED, by: OWNER }] },
    [false],
  ],
])("the migration makes a key personal: one %s", async (_, before, personal) => {
  expect(await upgraded(before)).toEqual({ personal, isClaimed: true });
});
