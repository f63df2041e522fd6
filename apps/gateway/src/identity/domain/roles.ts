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

/** Verbs of each role in its team. */
export const ROLE_VERBS: Readonly<Record<Role, readonly Verb[]>> = {
  viewer: VIEWER,
  member: MEMBER,
  admin: ADMIN,
  owner: VERBS,
};

/** Verbs of an agent identity: those of a member. */
export const AGENT_VERBS: readonly Verb[] = MEMBER;

/**
 * Verbs of a run token: work on the run's own tree and on its factory's tasks, but not the management of schedules and
 * environments.
 */
export const RUN_VERBS: readonly Verb[] = MEMBER.filter((verb) => verb !== "schedule.manage");

/**
 * Returns the verbs that are allowed by the scopes of a key. Scopes only narrow the role; no scopes allow all its
 * verbs.
 */
export const withinScopes = (verbs: readonly Verb[], scopes: readonly string[]): Verb[] =>
  scopes.length === 0 ? [...verbs] : verbs.filter((verb) => scopes.includes(verb));
