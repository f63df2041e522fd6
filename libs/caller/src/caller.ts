import type { RunUid, TeamUid } from "@millwright/ids";

/** Everything a caller may be allowed to do in a team. The role → verb table is the gateway's. */
export const VERBS = [
  "factory.view",
  "factory.manage",
  "source.apply",
  "run.view",
  "run.create",
  "run.manage",
  "task.manage",
  "artifact.manage",
  "agent.manage",
  "schedule.manage",
  "webhook.manage",
  "secret.manage",
  "team.manage",
] as const;

export type Verb = (typeof VERBS)[number];

export type PrincipalType = "user" | "agent" | "service" | "worker";

/** The authenticated principal. For a service, `uid` is its name. */
export type Principal = {
  readonly type: PrincipalType;
  readonly uid: string;
  readonly displayName?: string;
  readonly email?: string;
};

/** A team the caller is in, and what it may do there (role ∩ key scopes). */
export type TeamGrant = { readonly teamUid: TeamUid; readonly verbs: readonly Verb[] };

/** Who owns a resource: a team, or one person. */
export type Owner = { readonly type: "team" | "user"; readonly uid: string };

/** The run whose token is the credential; the token is valid during one attempt. */
export type RunBinding = {
  readonly runUid: RunUid;
  readonly rootRunUid: RunUid;
  /** The factory whose tasks the run may reach. */
  readonly factoryUid?: string;
  /** int64 as decimal text. */
  readonly executionId: string;
  readonly attempt: number;
};

/** Who calls, for which teams, under which request. Sent between services as a signed token. */
export type Caller = {
  readonly principal: Principal;
  readonly teams: readonly TeamGrant[];
  /**
   * What the credential may do with resources that the person (`actorOf`) owns personally: the key's scopes. Absent: no
   * access to them, as for keys of agents, tokens of team runs and keys that another user created for the person.
   */
  readonly personal?: readonly Verb[];
  /** The team chosen by header, or the team of a service account. May be a team the caller is not in. */
  readonly activeTeamUid?: TeamUid;
  /** May administer the platform (users, workers of all teams). Grants no verb inside a team. */
  readonly platformAdmin: boolean;
  readonly requestId: string;
  readonly run?: RunBinding;
  /** Set on service tokens of asynchronous work: the principal on whose behalf the service acts. */
  readonly actsFor?: Principal;
};
