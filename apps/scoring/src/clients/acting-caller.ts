import { serviceCaller, type Caller, type PrincipalType, type Verb } from "@millwright/caller";
import { newUid, type TeamUid } from "@millwright/ids";

/** The team and the requester that the service acts for. Without a requester, the service acts in its own name. */
export type Behalf = { readonly teamUid: string; readonly requester?: { readonly type: string; readonly uid: string } };

const JUDGE_VERBS = ["factory.view", "run.view", "run.create", "run.manage"] as const satisfies readonly Verb[];

/**
 * Returns the caller that represents this service in a team, on behalf of the requester of a score, with only the verbs
 * that judge runs need.
 */
export function callerFor(service: string, { teamUid, requester }: Behalf): Caller {
  const actsFor = requester && { type: requester.type as PrincipalType, uid: requester.uid };
  const self = serviceCaller(service, newUid(), actsFor, [{ teamUid: teamUid as TeamUid, verbs: JUDGE_VERBS }]);
  return requester?.type === "user" ? { ...self, personal: ["run.view"] } : self;
}
