export {
  VERBS,
  type Caller,
  type Owner,
  type Principal,
  type PrincipalType,
  type RunBinding,
  type TeamGrant,
  type Verb,
} from "./caller.ts";
export {
  actorOf,
  can,
  canAs,
  chooseTeam,
  isMember,
  ownersWith,
  requirePlatformAdmin,
  requireVerb,
  requireVerbAs,
  serviceCaller,
  teamsInView,
  teamsWith,
} from "./rules.ts";
