import { serviceCaller, type Caller, type PrincipalType, type Verb } from "@millwright/caller";
import { newUid, type TeamUid } from "@millwright/ids";

/** Whose work the service carries out in a team; without a requester it acts in its own name. */
export type Behalf = { readonly teamUid: string; readonly requester?: { readonly type: string; readonly uid: string } };

const JUDGE_VERBS = ["factory.view", "run.view", "run.create", "run.manage"] as const satisfies readonly Verb[];

/** Returns this service acting in a team for whoever asked for a score, with just what judge runs need. */
export function callerFor(service: string, { teamUid, requester }: Behalf): Caller {
  const actsFor = requester && { type: requester.type as PrincipalType, uid: requester.uid };
  const self = serviceCaller(service, newUid(), actsFor, [{ teamUid: teamUid as TeamUid, verbs: JUDGE_VERBS }]);
  return requester?.type === "user" ? { ...self, personal: ["run.view"] } : self;
}
