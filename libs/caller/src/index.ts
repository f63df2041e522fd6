export { VERBS, type Caller, type Principal, type PrincipalType, type RunBinding, type TeamGrant, type Verb } from "./caller.ts";
export { actorOf, can, chooseTeam, isMember, requireVerb, serviceCaller, teamsInView, teamsWith } from "./rules.ts";
