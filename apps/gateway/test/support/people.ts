import { VERBS, type Caller } from "@millwright/caller";
import type { RunUid, TeamUid } from "@millwright/ids";
import type { Profile } from "../../src/routes/identity/profiles.ts";

export const TEAM = "0198c2d0-0000-7000-8000-00000000000a" as TeamUid;
export const OTHER_TEAM = "0198c2d0-0000-7000-8000-00000000000b" as TeamUid;
export const USER = "0198c2d0-0000-7000-8000-0000000000aa";
export const AGENT = "0198c2d0-0000-7000-8000-0000000000ee";
export const RUN = "0198c2d0-0000-7000-8000-000000000001" as RunUid;

const base = { platformAdmin: false, requestId: "r1" };
const user = { type: "user", uid: USER, displayName: "Ada", email: "ada@example.com" } as const;
const agent = { type: "agent", uid: AGENT, displayName: "foreman" } as const;
const inTeam = [{ teamUid: TEAM, verbs: VERBS }];
const personal = VERBS;
const run = { runUid: RUN, rootRunUid: RUN, executionId: "7", attempt: 1 };

/** Callers by the credentials that the tests send. */
export const CALLERS = {
  member: { ...base, principal: user, personal, teams: inTeam },
  of_two_teams: {
    ...base,
    principal: user,
    personal,
    teams: [...inTeam, { teamUid: OTHER_TEAM, verbs: ["run.view"] }],
  },
  of_no_team: { ...base, principal: user, personal, teams: [] },
  admin: { ...base, platformAdmin: true, principal: user, personal, teams: [] },
  agent: { ...base, principal: agent, teams: inTeam, activeTeamUid: TEAM },
  run_of_agent: { ...base, principal: agent, teams: inTeam, activeTeamUid: TEAM, run },
  run_of_user: { ...base, principal: user, personal, teams: [], run },
} as const satisfies Record<string, Caller>;

export const PROFILES: Readonly<Record<string, Profile>> = {
  [USER]: { type: "user", uid: USER, display_name: "Ada", email: "ada@example.com" },
  [AGENT]: { type: "service_account", uid: AGENT, display_name: "foreman" },
};
