import { parse } from "yaml";
import type { worker } from "@millwright/contracts";
import { withoutScripts } from "../model/scripted/fences.ts";
import { SandboxRefusal, FileTooLarge } from "../sandbox/sandbox-errors.ts";
import type { SkillCatalog, SkillText, Workspace } from "../tools/tool.ts";

/** The directories in which repositories store skills for any agent, one subdirectory per skill. */
const SKILL_DIRECTORIES = [".agents/skills", ".claude/skills", "skills"];
const FILE = "SKILL.md";
const BYTES_MAX = 64 * 1024;
const PER_PLACE_MAX = 50;

/**
 * Returns the skills of the agent's definition, followed by those of the repositories, which are read on demand. If
 * several skills have the same name, the first one is used.
 */
export function skillCatalog(defined: readonly worker.Skill[], workspace: Workspace): SkillCatalog {
  const own = defined.map(({ name, description, body, spec }): SkillText => ({
    name,
    description,
    body: withoutScripts(body),
    path: spec,
  }));
  let found: Promise<readonly SkillText[]> | undefined;
  return {
    all: async () => {
      found ??= readRepositorySkills(workspace);
      return [...own, ...(await found)].filter(
        (skill, index, all) => all.findIndex(({ name }) => name === skill.name) === index,
      );
    },
  };
}

async function readRepositorySkills(workspace: Workspace): Promise<SkillText[]> {
  const skills: SkillText[] = [];
  for (const { directory } of workspace.copies) {
    for (const place of SKILL_DIRECTORIES) skills.push(...(await readPlace(workspace, `${directory}/${place}`)));
  }
  return skills;
}

/** Reads the skills of a directory. Ignores skills that are absent, too long or unreadable. Throws `SandboxGone`. */
async function readPlace({ sandbox }: Workspace, place: string): Promise<SkillText[]> {
  const { entries } = (await unlessRefused(() =>
    sandbox.list(sandbox.workspace, `${sandbox.workspace}/${place}`, FILE, 2),
  )) ?? { entries: [] };
  const skills: SkillText[] = [];
  for (const { path } of entries.slice(0, PER_PLACE_MAX)) {
    const text = await unlessRefused(() =>
      sandbox.readFile(sandbox.workspace, `${sandbox.workspace}/${place}/${path}`, BYTES_MAX),
    );
    const skill = text && readSkillFile(text.toString("utf8"), `${place}/${path}`);
    if (skill) skills.push(skill);
  }
  return skills;
}

/**
 * Parses a skill file: frontmatter with a name (default: the name of the directory) and a description, followed by the
 * procedure.
 */
export function readSkillFile(text: string, path: string): SkillText | undefined {
  const [, head = "", body = ""] = /^---\r?\n([\s\S]*?)\r?\n---\r?\n?([\s\S]*)$/.exec(text) ?? [];
  const fields = readFields(head);
  const name =
    typeof fields["name"] === "string" && fields["name"] !== "" ? fields["name"] : (path.split("/").at(-2) ?? "");
  const description = typeof fields["description"] === "string" ? fields["description"] : "";
  return head === "" || name === "" ? undefined : { name, description, body: withoutScripts(body).trim(), path };
}

function readFields(yaml: string): Record<string, unknown> {
  try {
    const value: unknown = parse(yaml, { schema: "failsafe" });
    return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}

async function unlessRefused<T>(act: () => Promise<T>): Promise<T | undefined> {
  try {
    return await act();
  } catch (error) {
    if (error instanceof SandboxRefusal || error instanceof FileTooLarge) return undefined;
    throw error;
  }
}
