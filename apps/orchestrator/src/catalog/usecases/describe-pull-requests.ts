import { requireServiceCaller, serviceCaller, type Caller } from "@millwright/caller";
import type { PullRequestFacts } from "@millwright/code-host";
import { invalidArgument, notFound } from "@millwright/errors";
import { isUuid, newUid, type TeamUid } from "@millwright/ids";
import { repositoryNamed, type CodeHost } from "../domain/code-host.ts";
import { readToken, type OpenCodeHosts, type ResolveSecrets } from "./open-code-host.ts";

export type DescribePullRequestsDeps = {
  readonly codeHosts: { find(teams: readonly TeamUid[], uid: string): Promise<CodeHost | undefined> };
  readonly identity: ResolveSecrets;
  readonly openCodeHost: OpenCodeHosts;
};

export type DescribePullRequestsInput = {
  readonly teamUid: TeamUid;
  readonly codeHostUid: string;
  readonly repository: string;
  readonly numbers: readonly number[];
};

const PULL_REQUESTS_MAX = 10;

/**
 * Reads the current state of pull requests of one repository from its code host, for services that filter by it.
 *
 * Errors: service_caller_required (permission_denied) · code_host_not_found · pull_request_not_found (also for a local
 * directory, which has no pull requests) · pull_requests_invalid · repository_invalid · those of the code host.
 */
export async function describePullRequests(
  deps: DescribePullRequestsDeps,
  caller: Caller,
  { teamUid, codeHostUid, repository, numbers }: DescribePullRequestsInput,
): Promise<PullRequestFacts[]> {
  requireServiceCaller(caller);
  if (numbers.length === 0 || numbers.length > PULL_REQUESTS_MAX)
    throw invalidArgument("pull_requests_invalid", `A request must name 1 to ${PULL_REQUESTS_MAX} pull requests.`);
  const connection = isUuid(codeHostUid) ? await deps.codeHosts.find([teamUid], codeHostUid) : undefined;
  if (!connection) throw notFound("code_host");
  const token = await readToken(deps.identity, serviceCaller("orchestrator", newUid()), connection);
  const { kind, host } = deps.openCodeHost(connection, token);
  if (kind === "local") throw notFound("pull_request");
  const named = repositoryNamed(repository);
  const found: PullRequestFacts[] = [];
  for (const number of numbers) {
    const facts = await host.describePullRequest(named, number);
    if (!facts) throw notFound("pull_request");
    found.push(facts);
  }
  return found;
}
