import { invalidArgument } from "@millwright/errors";
import type { Skill } from "./definition-part.ts";

/**
 * Returns the skills that a run's list names, in the order of the list. A name matches by path or by name; the agent's
 * own skills precede those of every agent. Every entry of a list in the request must resolve. A list in the agent's
 * configuration may name missing or malformed skills, which are left out.
 *
 * Errors: skill_not_found · skill_malformed, both only if `isRequested`.
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
    const skill = mine.find(({ path }) => path === name) ?? mine.find((candidate) => candidate.name === name);
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

/**
 * Returns the chosen skills, followed by the other skills that the agent may read while it works: its own and those of
 * every agent. Each name occurs once.
 */
export function offeredSkills(available: readonly Skill[], agentName: string, chosen: readonly Skill[]): Skill[] {
  const mine = available
    .filter(({ agent, error }) => error === "" && (agent === agentName || agent === ""))
    .sort((a, b) => Number(a.agent === "") - Number(b.agent === ""));
  return [...chosen, ...mine].filter((skill, index, all) => all.findIndex(({ name }) => name === skill.name) === index);
}
