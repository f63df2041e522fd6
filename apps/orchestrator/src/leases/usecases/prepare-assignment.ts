import { serviceCaller, type Caller } from "@millwright/caller";
import { newUid, type TeamUid } from "@millwright/ids";
import type { Job } from "../../runs/domain/assignment.ts";
import { codeHostFor, PUBLIC_GITHUB, type CodeHost } from "../../catalog/domain/code-host.ts";
import { credentialsFor, providerNamed, type PlatformProvider } from "../../catalog/domain/model-providers.ts";
import { workBranchOf } from "../../catalog/domain/pull-request.ts";
import type { AssignmentDetails } from "../../runs/domain/resolved-run.ts";
import type { FrozenRepository } from "../../runs/domain/pinned-repository.ts";
import type { RunRef } from "../../runs/domain/run-token.ts";
import type { WorkerSession } from "../../runs/domain/worker-session.ts";
import type { OpenCodeHosts } from "../../catalog/usecases/open-code-host.ts";

export type PrepareAssignmentDeps = {
  readonly identity: {
    resolveSecrets(
      caller: Caller,
      teamUid: string,
      names: readonly string[],
      optionalNames: readonly string[],
    ): Promise<Readonly<Record<string, string>>>;
  };
  readonly codeHosts: { list(teams: readonly TeamUid[]): Promise<readonly CodeHost[]> };
  readonly openCodeHost: OpenCodeHosts;
  readonly modelProviders: readonly PlatformProvider[];
};

type Secrets = Readonly<Record<string, string>>;

/**
 * Returns what an accepted execution receives in addition to its frozen configuration: the clone URLs of its
 * repositories, the authorization for git, the values of its secrets, and the credentials of its model provider. None
 * of it is stored. The platform's own provider keys are sent to platform workers only: a team operates its own workers
 * and could read the keys.
 *
 * Errors: those of identity.ResolveSecrets (secret_not_found: the run cannot be set up).
 */
export async function assignmentDetails(
  deps: PrepareAssignmentDeps,
  { run, frozen }: Pick<Job, "run" | "frozen">,
  worker: Pick<WorkerSession, "teamUid">,
): Promise<AssignmentDetails> {
  const connections =
    frozen.repositories.length > 0 && run.owner.type === "team"
      ? await deps.codeHosts.list([run.owner.uid as TeamUid])
      : [];
  const repositories = frozen.repositories.map((repository) => ({
    ...repository,
    connection: connectionOf(connections, repository),
  }));
  const hostSecrets = repositories.flatMap(({ connection }) => (connection?.secretName ? [connection.secretName] : []));
  const provider = providerNamed(frozen.provider);
  const values = await resolveSecrets(
    deps,
    run,
    [...new Set([...frozen.secret_names, ...hostSecrets, ...(frozen.harness_secret ? [frozen.harness_secret] : [])])],
    provider ? [provider.keyName, provider.urlName] : [],
  );
  const named = frozen.harness_secret && values[frozen.harness_secret];
  const credentials =
    provider &&
    (named
      ? { provider: provider.name, apiKey: named, baseUrl: values[provider.urlName] ?? "" }
      : credentialsFor(provider, values, worker.teamUid === undefined ? deps.modelProviders : []));
  return {
    repositories: repositories.map(({ owner, repo, commit, connection }) => {
      const token = (connection?.secretName && values[connection.secretName]) || "";
      const opened = deps.openCodeHost(connection ?? PUBLIC_GITHUB, token);
      return {
        ...{
          owner,
          name: repo,
          cloneUrl: opened.host.cloneUrl({ owner, repo }),
          baseBranch: "",
          workBranch: workBranchOf(run.runUid),
          baseCommit: commit ?? "",
        },
        ...{ authorizationHeader: token === "" ? "" : basicAuthorization(token), codeHost: opened.kind },
      };
    }),
    secrets: Object.fromEntries(frozen.secret_names.map((name) => [name, values[name] ?? ""])),
    providerCredentials: credentials,
  };
}

/**
 * Returns the connection that was frozen with the repository. If it no longer exists, returns the connection that
 * serves the repository's owner now.
 */
const connectionOf = (
  connections: readonly CodeHost[],
  { owner, code_host_uid: uid }: FrozenRepository,
): CodeHost | undefined => connections.find((connection) => connection.uid === uid) ?? codeHostFor(connections, owner);

async function resolveSecrets(
  deps: PrepareAssignmentDeps,
  run: RunRef,
  names: readonly string[],
  optionalNames: readonly string[],
): Promise<Secrets> {
  if (names.length + optionalNames.length === 0 || run.owner.type !== "team") return {};
  return deps.identity.resolveSecrets(actingFor(run), run.owner.uid, names, optionalNames);
}

/**
 * Returns a caller with which this service acts on behalf of the run's agent or, without an agent, the run's creator.
 */
export const actingFor = (run: Pick<RunRef, "agentUid" | "creatorUid">): Caller =>
  serviceCaller(
    "orchestrator",
    newUid(),
    run.agentUid ? { type: "agent", uid: run.agentUid } : { type: "user", uid: run.creatorUid },
  );

/**
 * Returns the extra HTTP header of git. The user name is the one that GitHub requires for tokens; other code hosts
 * ignore it.
 */
const basicAuthorization = (token: string): string =>
  `Authorization: Basic ${Buffer.from(`x-access-token:${token}`).toString("base64")}`;
