import { VERBS, type Verb } from "@millwright/caller";

export const ROLES = ["owner", "admin", "member", "viewer"] as const;
export type Role = (typeof ROLES)[number];

const VIEWER: readonly Verb[] = ["factory.view", "run.view"];
const MEMBER: readonly Verb[] = [
  ...VIEWER,
  "run.create",
  "run.manage",
  "task.manage",
  "artifact.manage",
  "schedule.manage",
];
const ADMIN: readonly Verb[] = [
  ...MEMBER,
  "factory.manage",
  "source.apply",
  "agent.manage",
  "webhook.manage",
  "secret.manage",
];

/** The one table of what a role may do in its team (spec/decisions "roles"). */
export const ROLE_VERBS: Readonly<Record<Role, readonly Verb[]>> = {
  viewer: VIEWER,
  member: MEMBER,
  admin: ADMIN,
  owner: VERBS,
};

/** An agent identity has member's verbs. */
export const AGENT_VERBS: readonly Verb[] = MEMBER;

/** What a run may do with its token: work on its own tree and its factory's tasks. It manages no schedules and no environments. */
export const RUN_VERBS: readonly Verb[] = MEMBER.filter((verb) => verb !== "schedule.manage");

/** Key scopes only ever narrow; none = all of the role. */
export const withinScopes = (verbs: readonly Verb[], scopes: readonly string[]): Verb[] =>
  scopes.length === 0 ? [...verbs] : verbs.filter((verb) => scopes.includes(verb));
