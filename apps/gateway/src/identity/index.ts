/**
 * The entry of identity: the rest of the gateway imports nothing else of this folder, which lint checks. Ways to
 * authenticate are created in `composeIdentity`, beside the authenticator of bearer credentials; what routes may do
 * with identities is in `operations.ts`.
 */
export { chosenKey } from "./chosen-key.ts";
export {
  composeIdentity,
  type Identity,
  type IdentityOptions,
  type ProviderSettings,
  type ProviderSignIn,
  type SessionOperations,
  type SignInLinks,
} from "./compose.ts";
export { createOwnerKey } from "./create-owner-key.ts";
export type { ProviderChecks } from "./clients/openid-provider.ts";
export { AGENT_TYPES, type Agent, type AgentFields } from "./domain/agent-identity.ts";
export { hashOfKey } from "./domain/credentials.ts";
export { parseClaimRoles } from "./domain/claimed-roles.ts";
export { ROLES, type Role } from "./domain/roles.ts";
export type { IdentityOperations } from "./operations.ts";
export type { Tx } from "./store/identity-db.ts";
export type { Invitation } from "./store/invitation-store.ts";
export type { Key } from "./store/key-store.ts";
export type { Secret } from "./store/secret-store.ts";
export type { Member, Team } from "./store/team-store.ts";
export type { Bootstrap } from "./usecases/bootstrap.ts";
export type { SessionLimits, SessionToken } from "./usecases/sessions.ts";
