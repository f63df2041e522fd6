import { serviceCaller, type Caller } from "@millwright/caller";
import type { Clock } from "@millwright/clock";
import type { SharedReads } from "@millwright/database";
import { readSkillFile } from "@millwright/definition";
import { newUid, type TeamUid } from "@millwright/ids";
import type { RepositoryRef } from "../domain/agent-config.ts";
import { codeHostFor, PUBLIC_GITHUB, type CodeHost } from "../domain/code-host.ts";
import type { Owner } from "@millwright/caller";
import { directoryOf, isSkillFile, SKILL_LIMITS, type RepositorySkill } from "../domain/skill-spec.ts";
import type { ReadRepository } from "../store/skill-store.ts";
import type { OpenCodeHosts } from "./open-code-host.ts";

export type DiscoverSkillsDeps = {
  readonly codeHosts: { list(teams: readonly TeamUid[]): Promise<readonly CodeHost[]> };
  readonly identity: {
    resolveSecrets(
      caller: Caller,
      teamUid: string,
      names: readonly string[],
      optionalNames: readonly string[],
    ): Promise<Readonly<Record<string, string>>>;
  };
  readonly openCodeHost: OpenCodeHosts;
  readonly readSkills: (owner: Owner, repositories: readonly string[]) => Promise<readonly ReadRepository[]>;
  readonly putSkills: (owner: Owner, read: ReadRepository) => Promise<void>;
  /** The reads in progress, by owner and repository. */
  readonly reads: SharedReads<ReadRepository>;
  readonly clock: Clock;
};

/** How long a successful read is cached, and how long an unreadable repository is not read again, in milliseconds. */
const CACHE_MS = 10 * 60_000;
const FAILURE_CACHE_MS = 60_000;
const CONCURRENCY = 6;

/**
 * Returns the skills of repositories at the head of their default branches, as the owner can read them, including
 * malformed ones. If a repository cannot be read, the skills of its last read are returned without an error. Of the
 * callers that read one repository concurrently, all but the first share the next read.
 */
export async function skillsOfRepositories(
  deps: DiscoverSkillsDeps,
  owner: Owner,
  repositories: readonly RepositoryRef[],
  isRefresh: boolean,
): Promise<RepositorySkill[]> {
  const wanted = new Map(repositories.map((repository) => [keyOf(repository), repository]));
  if (wanted.size === 0) return [];
  const known = new Map((await deps.readSkills(owner, [...wanted.keys()])).map((read) => [read.repository, read]));
  const now = deps.clock.now().getTime();
  const isGood = (read: ReadRepository | undefined): boolean =>
    read !== undefined && now - read.readAt.getTime() < (read.failure === "" ? CACHE_MS : FAILURE_CACHE_MS);
  const stale = [...wanted].filter(([key]) => isRefresh || !isGood(known.get(key)));
  if (stale.length > 0) {
    const hosts = owner.type === "team" ? await deps.codeHosts.list([owner.uid as TeamUid]) : [];
    const work = async () => {
      for (let next = stale.shift(); next; next = stale.shift())
        known.set(next[0], await readOnce(deps, owner, hosts, next[1], known.get(next[0])));
    };
    await Promise.all(Array.from({ length: CONCURRENCY }, work));
  }
  return [...wanted.keys()].flatMap((key) => known.get(key)?.skills ?? []);
}

const readOnce = (
  deps: DiscoverSkillsDeps,
  owner: Owner,
  hosts: readonly CodeHost[],
  repository: RepositoryRef,
  before: ReadRepository | undefined,
): Promise<ReadRepository> =>
  deps.reads.read(`${owner.type} ${owner.uid} ${keyOf(repository)}`, (justRead) =>
    readRepository(deps, owner, hosts, repository, justRead ?? before),
  );

async function readRepository(
  deps: DiscoverSkillsDeps,
  owner: Owner,
  hosts: readonly CodeHost[],
  repository: RepositoryRef,
  before: ReadRepository | undefined,
): Promise<ReadRepository> {
  const read = { repository: keyOf(repository), readAt: deps.clock.now() };
  const now = await findSkills(deps, owner, hosts, repository).then(
    (skills): ReadRepository => ({ ...read, skills, failure: "" }),
    (error: unknown): ReadRepository => ({ ...read, skills: before?.skills ?? [], failure: (error as Error).message }),
  );
  await deps.putSkills(owner, now);
  return now;
}

async function findSkills(
  deps: DiscoverSkillsDeps,
  owner: Owner,
  hosts: readonly CodeHost[],
  repository: RepositoryRef,
): Promise<RepositorySkill[]> {
  const connection = codeHostFor(hosts, repository.owner);
  const secret = connection?.secretName ?? "";
  const values =
    secret === ""
      ? {}
      : await deps.identity.resolveSecrets(serviceCaller("orchestrator", newUid()), owner.uid, [], [secret]);
  const { host } = deps.openCodeHost(connection ?? PUBLIC_GITHUB, values[secret] ?? "");
  const files = await host.readFiles(repository, { wants: isSkillFile, ...SKILL_LIMITS });
  return files.map(({ path, content }) => readSkill(repository, path, content));
}

/** Parses a SKILL.md file, which is untrusted input. The `error` of a malformed file states what is wrong. */
export function readSkill({ owner, repo }: RepositoryRef, path: string, content: Uint8Array): RepositorySkill {
  const text = textOf(content);
  if (text === undefined)
    return {
      owner,
      repo,
      path,
      name: directoryOf(path),
      description: "",
      body: "",
      error: "The file is not text in UTF-8.",
    };
  const { name, description, body, error = "" } = readSkillFile({ name: directoryOf(path) }, path, text);
  return { owner, repo, path, name, description, body, error };
}

function textOf(content: Uint8Array): string | undefined {
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(content);
    return text.includes("\0") ? undefined : text;
  } catch {
    return undefined;
  }
}

const keyOf = ({ owner, repo }: RepositoryRef): string => `${owner}/${repo}`.toLowerCase();
