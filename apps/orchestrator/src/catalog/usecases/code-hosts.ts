import { actorOf, requireVerb, serviceCaller, teamsInView, type Caller } from "@millwright/caller";
import type { Clock } from "@millwright/clock";
import { invalidArgument, notFound } from "@millwright/errors";
import { isUuid, newUid, type TeamUid } from "@millwright/ids";
import type { OnceRequest } from "../../storage/domain/once-request.ts";
import { checkCodeHost, type CodeHost, type NewCodeHost } from "../domain/code-host.ts";

export type CodeHostsDeps = {
  readonly codeHosts: {
    list(teams: readonly TeamUid[]): Promise<CodeHost[]>;
    find(teams: readonly TeamUid[], uid: string): Promise<CodeHost | undefined>;
    findCreated(request: OnceRequest): Promise<CodeHost | undefined>;
    insert(host: CodeHost, request: OnceRequest): Promise<CodeHost>;
    delete(uid: string): Promise<void>;
  };
  /** Directories below which teams may use local repositories. Empty by default. */
  readonly localRepositoryRoots: readonly string[];
  /** Returns whether a host is inside the platform's network and the operator has not allowed it. */
  readonly refusesHost: (host: string) => boolean;
  readonly identity: {
    resolveSecrets(
      caller: Caller,
      teamUid: string,
      names: readonly string[],
      optionalNames: readonly string[],
    ): Promise<Readonly<Record<string, string>>>;
  };
  readonly clock: Clock;
};

/** Returns the connections of the caller's teams, ordered by name; with `teamUid`, only those of that team. */
export function listCodeHosts(deps: CodeHostsDeps, caller: Caller, teamUid: string | undefined): Promise<CodeHost[]> {
  return deps.codeHosts.list(
    teamsInView(caller, "factory.view").filter((team) => teamUid === undefined || team === teamUid),
  );
}

/**
 * Connects a code host to a team, once per key. A repeated request returns the first result even if its secret was
 * deleted or the operator's rules have changed since.
 *
 * Errors: team_not_found · not_authorized · code_host_invalid · code_host_root_not_allowed · internal_address_refused ·
 * secret_missing · name_taken, idempotency_mismatch (conflict).
 */
export async function createCodeHost(
  deps: CodeHostsDeps,
  caller: Caller,
  teamUid: TeamUid,
  requested: NewCodeHost,
  key = "",
): Promise<CodeHost> {
  requireVerb(caller, teamUid, "factory.manage", "team");
  // The secret is sent to the address that the caller specifies.
  if (requested.secretName !== "") requireVerb(caller, teamUid, "secret.manage", "team");
  const request = { principalUid: actorOf(caller).uid, operation: "code-host", key, body: [teamUid, requested] };
  const created = await deps.codeHosts.findCreated(request);
  if (created) return created;

  const checked = checkCodeHost(requested, deps.localRepositoryRoots);
  if (checked.baseUrl !== "" && deps.refusesHost(new URL(checked.baseUrl).hostname))
    throw invalidArgument(
      "internal_address_refused",
      "base_url is inside the network of this platform; its operator can allow it (MILLWRIGHT_ALLOWED_INTERNAL_HOSTS).",
    );
  await requireSecret(deps, teamUid, checked.secretName);
  const host = { ...checked, uid: newUid(), teamUid, createdAt: deps.clock.now() };
  return deps.codeHosts.insert(host, request);
}

/** Errors: secret_missing. */
async function requireSecret({ identity }: CodeHostsDeps, teamUid: TeamUid, name: string): Promise<void> {
  if (name === "") return;
  const found = await identity.resolveSecrets(serviceCaller("orchestrator", newUid()), teamUid, [], [name]);
  if (Object.hasOwn(found, name)) return;
  throw invalidArgument(
    "secret_missing",
    `secret_name: the team has no managed secret named "${name}". Store the secret first.`,
  );
}

/**
 * Deletes a connection. Runs that refer to it use the connection that serves the owner of their repositories. Errors:
 * code_host_not_found · not_authorized.
 */
export async function deleteCodeHost(deps: CodeHostsDeps, caller: Caller, uid: string): Promise<void> {
  const host = isUuid(uid)
    ? await deps.codeHosts.find(
        caller.teams.map(({ teamUid }) => teamUid),
        uid,
      )
    : undefined;
  if (!host) throw notFound("code_host");
  requireVerb(caller, host.teamUid, "factory.manage", "code_host");
  await deps.codeHosts.delete(host.uid);
}
