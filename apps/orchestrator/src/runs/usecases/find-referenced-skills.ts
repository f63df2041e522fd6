import type { Skill } from "../../catalog/domain/definition-part.ts";
import type { RepositoryRef } from "../../catalog/domain/agent-config.ts";
import type { Owner } from "../domain/run.ts";
import { asOffered, findSkill, mayBeIn, readSkillSpec } from "../../catalog/domain/skill-spec.ts";
import { skillsOfRepositories, type DiscoverSkillsDeps } from "../../catalog/usecases/discover-skills.ts";
import { repositoriesIn, type ListSkillsDeps } from "../../catalog/usecases/list-skills.ts";

/** A skill and the text of a request or an agent that refers to it. */
export type FoundSkill = { readonly text: string; readonly skill: Skill };

export type FindReferencedSkillsDeps = DiscoverSkillsDeps &
  Pick<ListSkillsDeps, "environments" | "definitions" | "workerSkills">;

/**
 * Returns the skills to which texts such as `owner/repo:path` refer: first those of the run's own repositories, then
 * those of the repositories of its owner's environments and factories, then those of connected workers. Texts of
 * another form and texts without a match are left out. Texts of another form cause no reads.
 */
export async function findReferencedSkills(
  deps: FindReferencedSkillsDeps,
  owner: Owner,
  texts: readonly string[],
  own: readonly RepositoryRef[],
): Promise<FoundSkill[]> {
  const specs = texts.flatMap((text) => readSkillSpec(text) ?? []);
  if (specs.length === 0) return [];
  const teams = owner.type === "team" ? [owner.uid] : [];
  const [environments, factories, workers] = await Promise.all([
    deps.environments.list([owner], "name"),
    deps.definitions.inForce(teams),
    deps.workerSkills(teams),
  ]);
  const repositories = [
    ...own,
    ...environments.flatMap(repositoriesIn),
    ...factories.flatMap((factory) => factory.repositories),
  ];
  const read = await skillsOfRepositories(
    deps,
    owner,
    repositories.filter((repository) => specs.some((spec) => mayBeIn(spec, repository))),
    false,
  );
  const candidates = [...read, ...workers.flatMap(({ skills }) => skills)];
  return texts.flatMap((text) => {
    const skill = findSkill(text, candidates);
    return skill ? [{ text, skill: asOffered(skill) }] : [];
  });
}
