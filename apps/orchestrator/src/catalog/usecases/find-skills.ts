import { requireVerb, type Caller } from "@millwright/caller";
import { asOffered, findSkill, FACTORY_OWNER, mayBeIn, readSkillSpec } from "../domain/skill-spec.ts";
import { skillsOfRepositories } from "./discover-skills.ts";
import { repositoriesIn, type ListSkillsDeps } from "./list-skills.ts";

/**
 * Returns the full specs of the skills that a team's agents would resolve from these texts, including malformed files.
 * Texts without a match are left out. If the cache of repositories has no match, the repositories are read again.
 * Errors: team_not_found.
 */
export async function findSkills(
  deps: ListSkillsDeps,
  caller: Caller,
  teamUid: string,
  texts: readonly string[],
): Promise<Map<string, string>> {
  requireVerb(caller, teamUid, "run.view", "team");
  const owner = { type: "team", uid: teamUid } as const;
  const [environments, factories, workers] = await Promise.all([
    deps.environments.list([owner], "name"),
    deps.definitions.inForce([teamUid]),
    deps.workerSkills([teamUid]),
  ]);
  const repositories = [
    ...environments.flatMap(repositoriesIn),
    ...factories.flatMap((factory) => factory.repositories),
  ];
  const elsewhere = [
    ...factories.flatMap(({ factoryUid, skills }) =>
      skills.map((skill) => ({ owner: FACTORY_OWNER, repo: factoryUid, ...skill })),
    ),
    ...workers.flatMap(({ skills }) => skills),
  ];
  const found = new Map<string, string>();
  for (const isRefresh of [false, true]) {
    const missing = texts.filter((text) => !found.has(text));
    const named = missing.flatMap((text) => readSkillSpec(text) ?? []);
    const read = await skillsOfRepositories(
      deps,
      owner,
      repositories.filter((repository) => named.some((spec) => mayBeIn(spec, repository))),
      isRefresh,
    );
    for (const text of missing) {
      const skill = findSkill(text, [...read, ...elsewhere]);
      if (skill) found.set(text, asOffered(skill).path);
    }
  }
  return found;
}
