import { invalidArgument } from "@millwright/errors";
import type { Skill } from "./definition-part.ts";

/**
 * The skills that a run's list names, in its order: by path or by name, the agent's own before those of every agent.
 * A list that the request itself gave must resolve whole; one from the agent's configuration may name broken skills, which
 * never block (factory-files §12).
 *
 * Errors: skill_not_found · skill_malformed, both only when `isRequested`.
 */
export function chooseSkills(
  available: readonly Skill[],
  agentName: string,
  names: readonly string[],
  isRequested: boolean,
): Skill[] {
  const mine = available
    .filter(({ agent }) => agent === agentName || agent === "")
    .sort((a, b) => Number(a.agent === "") - Number(b.agent === ""));
  const chosen = names.flatMap((name) => {
    const skill = mine.find(({ path }) => path === name) ?? mine.find((one) => one.name === name);
    if (skill && skill.error === "") return [skill];
    if (!isRequested) return [];
    if (skill)
      throw invalidArgument("skill_malformed", `The skill "${name}" cannot be used: ${skill.error}`, { skill: name });
    throw invalidArgument(
      "skill_not_found",
      `There is no skill "${name}" in the agent's factory, in the repositories of the owner's environments and factories, or on its workers.`,
      { skill: name },
    );
  });
  return [...new Set(chosen)];
}

/** The chosen skills, then every other one that the agent may read while it works: its own and those of every agent, by name each once. */
export function offeredSkills(available: readonly Skill[], agentName: string, chosen: readonly Skill[]): Skill[] {
  const mine = available
    .filter(({ agent, error }) => error === "" && (agent === agentName || agent === ""))
    .sort((a, b) => Number(a.agent === "") - Number(b.agent === ""));
  return [...chosen, ...mine].filter((skill, index, all) => all.findIndex(({ name }) => name === skill.name) === index);
}
