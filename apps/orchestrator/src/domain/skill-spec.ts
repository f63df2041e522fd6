import { isUuid, type FactoryUid } from "@millwright/ids";
import type { Skill } from "./definition-part.ts";
import type { RepositoryRef } from "./agent-config.ts";

/** A skill with the repository it lies in; `path` is the file's. `error` "": usable. */
export type RepositorySkill = {
  readonly owner: string;
  readonly repo: string;
  readonly path: string;
  readonly name: string;
  readonly description: string;
  readonly body: string;
  readonly error: string;
};

/** Bounds of what is read of one repository, or taken from one worker. */
export const SKILL_LIMITS = { filesMax: 100, fileBytesMax: 64 * 1024 } as const;

/** Where repositories keep skills for agents of any kind, one directory each: the places that workers look at, too. */
export const isSkillFile = (path: string): boolean => /^(?:\.agents\/|\.claude\/)?skills\/[^/]+\/SKILL\.md$/.test(path);

/** The directory that a skill is called by when its file does not say. */
export const directoryOf = (path: string): string => path.split("/").at(-2) ?? "";

/** What a run names a skill by (fields-runs §3.2). */
export const specOf = ({ owner, repo, path }: Pick<RepositorySkill, "owner" | "repo" | "path">): string =>
  `${owner}/${repo}:${path}`;

/** Owner, under which skills of a factory's definition are listed: their repository is the factory itself. */
export const FACTORY_OWNER = "factory";

/** The whole spec of a skill of a factory's definition, by which runs store it: paths alone are alike in two factories. */
export const factorySpec = (factoryUid: FactoryUid, path: string): string =>
  specOf({ owner: FACTORY_OWNER, repo: factoryUid, path });

/** Whether a skill claims the place of a factory's definition, which no repository and no worker has. */
export const claimsFactory = ({ owner, repo }: RepositoryRef): boolean => same(owner, FACTORY_OWNER) && isUuid(repo);

type SkillSpec = { readonly owner?: string; readonly repo: string; readonly named: string };

/** `owner/repo:path`, `owner/repo:name`, `repo:path` or `repo:name` (fields-runs §6.1); undefined for any other text. */
export function readSkillSpec(text: string): SkillSpec | undefined {
  const [, owner, repo = "", named = ""] = /^(?:([A-Za-z0-9._-]+)\/)?([A-Za-z0-9._-]+):(.+)$/s.exec(text.trim()) ?? [];
  return named === "" ? undefined : { ...(owner === undefined ? {} : { owner }), repo, named };
}

/** `owner/repo`; undefined for any other text. */
export function readRepository(text: string): RepositoryRef | undefined {
  const [, owner, repo] = /^([A-Za-z0-9._-]{1,100})\/([A-Za-z0-9._-]{1,100})$/.exec(text) ?? [];
  return owner === undefined || repo === undefined ? undefined : { owner, repo };
}

const same = (a: string, b: string): boolean => a.toLowerCase() === b.toLowerCase();
export const isSameRepository = (a: RepositoryRef, b: RepositoryRef): boolean =>
  same(a.owner, b.owner) && same(a.repo, b.repo);
export const mayBeIn = ({ owner, repo }: SkillSpec, repository: RepositoryRef): boolean =>
  same(repo, repository.repo) && (owner === undefined || same(owner, repository.owner));

/** The skill that a text means, by path before by name; the first repository that has it. */
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

/** As a run keeps it: called by its whole spec. */
export const asOffered = (skill: RepositorySkill): Skill => ({
  path: specOf(skill),
  name: skill.name,
  agent: "",
  description: skill.description,
  body: skill.body,
  error: skill.error,
});
