import type { DefinitionStore } from "../store/definition-store.ts";
import { ownersWith, teamsInView, type Caller } from "@millwright/caller";
import { invalidArgument } from "@millwright/errors";
import type { FactoryUid, TeamUid } from "@millwright/ids";
import type { RepositoryRef } from "../domain/agent-config.ts";
import type { Skill } from "../domain/definition-part.ts";
import type { Environment } from "../domain/environment.ts";
import type { Owner } from "@millwright/caller";
import { FACTORY_OWNER, isSameRepository, readRepository, specOf, type RepositorySkill } from "../domain/skill-spec.ts";
import { skillsOfRepositories, type DiscoverSkillsDeps } from "./discover-skills.ts";
import { environmentsInView, type EnvironmentsDeps } from "./environments.ts";

/** The repositories and skills of a factory's active definition. */
export type FactoryInForce = {
  readonly factoryUid: FactoryUid;
  readonly teamUid: TeamUid;
  readonly repositories: readonly RepositoryRef[];
  readonly skills: readonly Skill[];
};

export type ListSkillsDeps = DiscoverSkillsDeps &
  Pick<EnvironmentsDeps, "environments"> & {
    readonly definitions: Pick<DefinitionStore, "inForce">;
    readonly workerSkills: (
      teamUids: readonly string[],
    ) => Promise<readonly { readonly workerHost: string; readonly skills: readonly RepositorySkill[] }[]>;
    /** Returns when each skill was last run, by its full spec. */
    readonly lastRuns: (owners: readonly Owner[], specs: readonly string[]) => Promise<ReadonlyMap<string, Date>>;
  };

export type SkillVariant = RepositorySkill & {
  readonly id: string;
  readonly workerHost?: string;
  readonly environments: readonly { readonly uid: string; readonly name: string }[];
  readonly lastRunAt?: Date;
};
export type ListedSkill = { readonly name: string; readonly variants: readonly SkillVariant[] };
export type SkillQuery = {
  readonly teamUid: string | undefined;
  readonly repo: string | undefined;
  readonly isRefresh: boolean;
  readonly sortBy: "name" | "last_run";
  readonly includeMalformed: boolean;
};

type Found = RepositorySkill & { readonly workerHost?: string };

/**
 * Returns the skills that the caller's agents can use: from the repositories of environments and factories, from active
 * definitions, and from connected workers. Skills with the same name are variants of one entry.
 *
 * Errors: invalid_repo.
 */
export async function listSkills(deps: ListSkillsDeps, caller: Caller, query: SkillQuery): Promise<ListedSkill[]> {
  const repo = query.repo === undefined ? undefined : readRepository(query.repo);
  if (query.repo !== undefined && !repo) throw invalidArgument("invalid_repo", "repo must have the form owner/repo.");
  const teams = teamsInView(caller, "run.view").filter((team) => query.teamUid === undefined || team === query.teamUid);
  const person =
    query.teamUid === undefined ? ownersWith(caller, "run.view").filter(({ type }) => type === "user") : [];
  const owners: Owner[] = [...teams.map((uid): Owner => ({ type: "team", uid })), ...person];
  const [environments, factories, workers] = await Promise.all([
    environmentsInView(deps, caller, query.teamUid, "name"),
    deps.definitions.inForce(teams),
    deps.workerSkills(teams),
  ]);

  const isWanted = (repository: RepositoryRef): boolean => repo === undefined || isSameRepository(repository, repo);
  const inRepositories = await Promise.all(
    owners.map((owner) =>
      skillsOfRepositories(
        deps,
        owner,
        repositoriesOf(owner, owners, environments, factories).filter(isWanted),
        query.isRefresh,
      ),
    ),
  );
  const found: Found[] = [
    ...inRepositories.flat(),
    ...factories.flatMap(ofDefinition).filter(isWanted),
    ...workers.flatMap(({ workerHost, skills }) =>
      skills.filter(isWanted).map((skill): Found => ({ ...skill, workerHost })),
    ),
  ];
  const shown = distinct(found.filter(({ error }) => query.includeMalformed || error === ""));
  const lastRuns = await deps.lastRuns(owners, [...new Set(shown.map(specOf))]);
  return grouped(
    shown.map((skill) => variant(skill, environments, lastRuns)),
    query.sortBy,
  );
}

/**
 * Returns the repositories to read with the access of `owner`: those of its environments and factories. Repositories of
 * an environment that is shared with the caller are read with the access of the first of `owners`.
 */
function repositoriesOf(
  owner: Owner,
  owners: readonly Owner[],
  environments: readonly Environment[],
  factories: readonly FactoryInForce[],
): RepositoryRef[] {
  const isOf = (a: Owner, b: Owner): boolean => a.type === b.type && a.uid === b.uid;
  const mine = environments.filter((environment) =>
    isOf(owners.find((candidate) => isOf(candidate, environment.owner)) ?? owners[0]!, owner),
  );
  const ofFactories = factories
    .filter(({ teamUid }) => owner.type === "team" && teamUid === owner.uid)
    .flatMap(({ repositories }) => repositories);
  return [...mine.flatMap(repositoriesIn), ...ofFactories];
}

export const repositoriesIn = ({ config }: Pick<Environment, "config">): readonly RepositoryRef[] =>
  (config["github_repos"] as readonly RepositoryRef[] | undefined) ?? [];

const ofDefinition = ({ factoryUid, skills }: FactoryInForce): Found[] =>
  skills.map(({ path, name, description, body, error }) => ({
    owner: FACTORY_OWNER,
    repo: factoryUid,
    path,
    name,
    description,
    body,
    error,
  }));

/** Returns one skill per spec and worker host: the same repository may be read for several owners. */
const distinct = (skills: readonly Found[]): Found[] => [
  ...new Map(skills.map((skill) => [`${specOf(skill)} ${skill.workerHost ?? ""}`, skill])).values(),
];

function variant(
  skill: Found,
  environments: readonly Environment[],
  lastRuns: ReadonlyMap<string, Date>,
): SkillVariant {
  const lastRunAt = lastRuns.get(specOf(skill));
  const around = environments.filter((environment) =>
    repositoriesIn(environment).some((repository) => isSameRepository(repository, skill)),
  );
  return {
    ...skill,
    id: specOf(skill),
    environments: around.map(({ uid, config }) => ({ uid, name: String(config["name"]) })),
    lastRunAt,
  };
}

function grouped(variants: readonly SkillVariant[], sortBy: "name" | "last_run"): ListedSkill[] {
  const names = [...new Set(variants.map(({ name }) => name))].toSorted(
    (a, b) => compare(a.toLowerCase(), b.toLowerCase()) || compare(a, b),
  );
  const skills = names.map((name) => ({
    name,
    variants: variants
      .filter((candidate) => candidate.name === name)
      .toSorted((a, b) => compare(a.id, b.id) || compare(a.workerHost ?? "", b.workerHost ?? "")),
  }));
  return sortBy === "name" ? skills : skills.toSorted((a, b) => newest(b) - newest(a));
}

/** Returns the time of the last run in milliseconds. Returns 0, which sorts last, if the skill was never run. */
const newest = ({ variants }: ListedSkill): number =>
  Math.max(0, ...variants.map(({ lastRunAt }) => lastRunAt?.getTime() ?? 0));
const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);
