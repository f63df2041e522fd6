import { isUuid, type FactoryUid } from "@millwright/ids";
import type { Skill } from "./definition-part.ts";
import type { RepositoryRef } from "./agent-config.ts";

/** A skill in a repository. `path` is the path of its file. `error` "": usable. */
export type RepositorySkill = {
  readonly owner: string;
  readonly repo: string;
  readonly path: string;
  readonly name: string;
  readonly description: string;
  readonly body: string;
  readonly error: string;
};

/** Limits of the skills that are read from one repository or reported by one worker. */
export const SKILL_LIMITS = { filesMax: 100, fileBytesMax: 64 * 1024 } as const;

/**
 * Returns whether a path is a skill file. Repositories store skills in these directories for every harness; workers
 * search the same ones.
 */
export const isSkillFile = (path: string): boolean => /^(?:\.agents\/|\.claude\/)?skills\/[^/]+\/SKILL\.md$/.test(path);

/** Returns the name of a skill's directory, which is the name of the skill if its file does not set one. */
export const directoryOf = (path: string): string => path.split("/").at(-2) ?? "";

/** Returns the spec by which a run names a skill. */
export const specOf = ({ owner, repo, path }: Pick<RepositorySkill, "owner" | "repo" | "path">): string =>
  `${owner}/${repo}:${path}`;

/** The owner in the specs of skills in a factory's definition. The repository is the uid of the factory. */
export const FACTORY_OWNER = "factory";

/**
 * Returns the full spec of a skill in a factory's definition, as runs store it. Paths alone may be equal in two
 * factories.
 */
export const factorySpec = (factoryUid: FactoryUid, path: string): string =>
  specOf({ owner: FACTORY_OWNER, repo: factoryUid, path });

/**
 * Returns whether a repository has the form of a factory's spec, which no skill of a repository or a worker may have.
 */
export const claimsFactory = ({ owner, repo }: RepositoryRef): boolean => same(owner, FACTORY_OWNER) && isUuid(repo);

type SkillSpec = { readonly owner?: string; readonly repo: string; readonly named: string };

/**
 * Returns the parsed spec: `owner/repo:path`, `owner/repo:name`, `repo:path` or `repo:name`. Returns undefined for any
 * other text.
 */
export function readSkillSpec(text: string): SkillSpec | undefined {
  const [, owner, repo = "", named = ""] = /^(?:([A-Za-z0-9._-]+)\/)?([A-Za-z0-9._-]+):(.+)$/s.exec(text.trim()) ?? [];
  return named === "" ? undefined : { owner, repo, named };
}

/** Returns the repository of a text `owner/repo`, or undefined for any other text. */
export function readRepository(text: string): RepositoryRef | undefined {
  const [, owner, repo] = /^([A-Za-z0-9._-]{1,100})\/([A-Za-z0-9._-]{1,100})$/.exec(text) ?? [];
  return owner === undefined || repo === undefined ? undefined : { owner, repo };
}

const same = (a: string, b: string): boolean => a.toLowerCase() === b.toLowerCase();
export const isSameRepository = (a: RepositoryRef, b: RepositoryRef): boolean =>
  same(a.owner, b.owner) && same(a.repo, b.repo);
export const mayBeIn = ({ owner, repo }: SkillSpec, repository: RepositoryRef): boolean =>
  same(repo, repository.repo) && (owner === undefined || same(owner, repository.owner));

/** Returns the skill that a text specifies: by path, then by name, from the first repository that has it. */
export function findSkill(text: string, skills: readonly RepositorySkill[]): RepositorySkill | undefined {
  const spec = readSkillSpec(text);
  if (!spec) return undefined;
  const inPlace = skills.filter((skill) => mayBeIn(spec, skill));
  return (
    inPlace.find(({ path }) => path === spec.named) ??
    inPlace.find(({ name, error }) => name === spec.named && error === "") ??
    inPlace.find(({ name }) => name === spec.named)
  );
}

/** Returns the skill as stored with a run, with its full spec as path. */
export const asOffered = (skill: RepositorySkill): Skill => ({
  path: specOf(skill),
  name: skill.name,
  agent: "",
  description: skill.description,
  body: skill.body,
  error: skill.error,
});
