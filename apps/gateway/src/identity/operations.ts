import type { Caller } from "@millwright/caller";
import type { orchestrator } from "@millwright/contracts";
import { listAgents, getAgent } from "./store/agent-store.ts";
import type { IdentityDb, Tx } from "./store/identity-db.ts";
import { listKeys } from "./store/key-store.ts";
import { listSecrets } from "./store/secret-store.ts";
import { getTeam, listMembers, listTeams, rolesOf } from "./store/team-store.ts";
import { findPrincipal } from "./usecases/act-on-behalf.ts";
import { createKey, type CreateKeyDeps } from "./usecases/create-key.ts";
import { createTeam } from "./usecases/create-team.ts";
import { getProfiles, type ProfileQuery } from "./usecases/get-profiles.ts";
import {
  acceptInvitation,
  declineInvitation,
  invite,
  listOwnInvitations,
  listTeamInvitations,
  revokeInvitation,
  type InvitationDeps,
} from "./usecases/invitations.ts";
import { knownAgent, type KnownAgentQuery } from "./rpc/known-agent.ts";
import { appendSecrets, createAgent, deleteAgent, updateAgent } from "./usecases/manage-agents.ts";
import { addMember, changeRole, removeMember } from "./usecases/manage-members.ts";
import { deleteSecret, setSecret, type SecretDeps } from "./usecases/manage-secrets.ts";
import { revokeKey } from "./usecases/revoke-key.ts";
import { updateTeam } from "./usecases/update-team.ts";

type Deps = CreateKeyDeps & SecretDeps & InvitationDeps;
type UseCase<Input, Result> = (deps: Deps, caller: Caller, input: Input) => Promise<Result>;

/** A list's position: rows after it are returned. */
type Position = { createdAt: Date; uid: string };

export type IdentityOperations = ReturnType<typeof identityOperations>;

/**
 * Returns what the rest of the gateway can do with identities, by resource. Creates run in the transaction of their
 * caller, which stores the response for the Idempotency-Key in it; other changes run in a transaction of their own.
 * Lists and `get` of teams, members, keys and secrets do not check permissions; everything else does.
 */
export function identityOperations(db: IdentityDb, deps: Omit<Deps, "tx">) {
  const inTransactionOfCaller =
    <Input, Result>(useCase: UseCase<Input, Result>) =>
    (tx: Tx, caller: Caller, input: Input): Promise<Result> =>
      useCase({ ...deps, tx }, caller, input);
  const inOwnTransaction =
    <Input, Result>(useCase: UseCase<Input, Result>) =>
    (caller: Caller, input: Input): Promise<Result> =>
      db.transaction((tx) => useCase({ ...deps, tx }, caller, input));
  const reading = { ...deps, tx: db.now };
  return {
    transaction: <Result>(f: (tx: Tx) => Promise<Result>): Promise<Result> => db.transaction(f),
    teams: {
      list: (uids: readonly string[]) => listTeams(db.now, uids),
      get: (uid: string) => getTeam(db.now, uid),
      create: inTransactionOfCaller(createTeam),
      update: inOwnTransaction(updateTeam),
    },
    members: {
      list: (teamUid: string, after: Position | undefined, limit: number) => listMembers(db.now, teamUid, after, limit),
      /** Returns the roles of a user by team. */
      rolesOf: (userUid: string) => rolesOf(db.now, userUid),
      add: inTransactionOfCaller(addMember),
      changeRole: inOwnTransaction(changeRole),
      remove: inOwnTransaction(removeMember),
    },
    invitations: {
      listOfTeam: (caller: Caller, teamUid: string) => listTeamInvitations(reading, caller, teamUid),
      listOwn: (caller: Caller) => listOwnInvitations(reading, caller),
      create: inTransactionOfCaller(invite),
      revoke: inOwnTransaction(revokeInvitation),
      accept: inOwnTransaction(acceptInvitation),
      decline: inOwnTransaction(declineInvitation),
    },
    keys: {
      list: (teamUid: string, options: Parameters<typeof listKeys>[2]) => listKeys(db.now, teamUid, options),
      create: inTransactionOfCaller(createKey),
      revoke: inOwnTransaction(revokeKey),
    },
    secrets: {
      list: (teamUid: string, afterName: string | undefined, limit: number) =>
        listSecrets(db.now, teamUid, afterName, limit),
      create: inTransactionOfCaller(setSecret),
      set: inOwnTransaction(setSecret),
      delete: inOwnTransaction(deleteSecret),
    },
    agents: {
      list: (teamUids: readonly string[], factoryUid?: string) => listAgents(db.now.sql, teamUids, factoryUid),
      get: (teamUids: readonly string[], uid: string) => getAgent(db.now.sql, teamUids, uid),
      create: inTransactionOfCaller(createAgent),
      update: inOwnTransaction(updateAgent),
      appendSecrets: inOwnTransaction(appendSecrets),
      delete: inOwnTransaction(deleteAgent),
      /** Returns an agent as the orchestrator needs it for a new run. */
      known: (caller: Caller, query: KnownAgentQuery): Promise<orchestrator.KnownAgent | undefined> =>
        knownAgent(db.lookups, caller, query),
      /** Returns the uid of the member on whose behalf an agent acts. */
      findPrincipal: (caller: Caller, teamUid: string, member: string) =>
        findPrincipal(db.now, caller, teamUid, member),
    },
    profiles: {
      find: (query: ProfileQuery) => getProfiles(db.now, query),
    },
  };
}
