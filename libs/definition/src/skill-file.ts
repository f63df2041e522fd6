import { isMap, isScalar } from "yaml";
import { omitUndefined } from "@millwright/json";
import type { SkillPart } from "./definition.ts";
import { Problems } from "./diagnostics.ts";
import { isStorable } from "./fields.ts";
import { SEGMENT } from "./layout.ts";
import { parseMarkdown } from "./markdown.ts";

/**
 * Reads a SKILL.md. Skills are not validated as part of the definition: a broken skill has an
 * `error`, and unknown keys are ignored.
 */
export function readSkillFile(place: { name: string; agent?: string }, path: string, text: string): SkillPart {
  const problems = new Problems();
  const parsed = parseMarkdown(path, text, problems);
  const [name, description] = [textOf(parsed?.map, "name"), textOf(parsed?.map, "description")];
  const skill: SkillPart = {
    name: name ?? place.name,
    ...omitUndefined({ agent: place.agent }),
    description: description ?? "",
    body: parsed?.body ?? "",
    path,
  };
  const [first] = problems.sorted();
  const error =
    (first && `${first.message} (line ${first.line}, column ${first.column})`) ??
    (SEGMENT.test(place.name) ? undefined : "The directory's name is not a valid name.") ??
    (name === undefined ? "name is required." : undefined) ??
    (description === undefined ? "description is required." : undefined) ??
    (skill.body === "" ? "The text after the frontmatter is the procedure and is required." : undefined);
  return error === undefined ? skill : { ...skill, error };
}

/** The skill of an unreadable SKILL.md. */
export const brokenSkill = (
  { name, agent }: { name: string; agent?: string },
  path: string,
  error: string,
): SkillPart => ({
  name,
  ...omitUndefined({ agent }),
  description: "",
  body: "",
  path,
  error,
});

/** Marks duplicates by name and owner as unusable; `skills` by path. */
export function markDuplicates(skills: readonly SkillPart[]): SkillPart[] {
  const seen = new Map<string, string>();
  return skills.map((skill) => {
    const key = `${skill.agent ?? ""}/${skill.name}`;
    const first = seen.get(key);
    if (skill.error !== undefined) return skill;
    if (first === undefined) seen.set(key, skill.path);
    return first === undefined ? skill : { ...skill, error: `The name is already that of ${first}.` };
  });
}

/** Returns the names an agent can use: its own skills and the shared ones. */
export const skillsOf = (agent: string, skills: readonly SkillPart[]): string[] => {
  const usable = skills.filter(
    (skill) => skill.error === undefined && (skill.agent === undefined || skill.agent === agent),
  );
  return [...new Set(usable.map(({ name }) => name))].toSorted();
};

function textOf(map: unknown, key: string): string | undefined {
  if (!isMap(map)) return undefined;
  const value = map.items.find((item) => isScalar(item.key) && item.key.value === key)?.value;
  return isScalar(value) && typeof value.value === "string" && value.value.trim() !== "" && isStorable(value.value)
    ? value.value.trim()
    : undefined;
}
