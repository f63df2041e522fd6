import { lstat, readdir, readFile } from "node:fs/promises";
import { join } from "node:path";

/** A SKILL.md of a checkout on this machine, in the form that is reported to the platform. */
export type ReportedSkill = {
  readonly owner: string;
  readonly repo: string;
  readonly path: string;
  readonly content: string;
};

const SKILL_DIRECTORIES = [".agents/skills", ".claude/skills", "skills"];
const BYTES_MAX = 64 * 1024;
const SKILLS_MAX = 100;
const CHECKOUT = /^([\w.-]+)\/([\w.-]+)=(\/.*)$/;

/** Parses a checkout setting. Throws if the text is not `owner/repo=/directory`. */
export function readCheckout(text: string): { owner: string; repo: string; directory: string } {
  const [, owner, repo, directory] = CHECKOUT.exec(text) ?? [];
  if (owner === undefined || repo === undefined || directory === undefined)
    throw new Error(`${text} is not owner/repo=/directory`);
  return { owner, repo, directory };
}

/**
 * Returns the skills of checkouts from the standard skill directories. Links are not followed; missing or too long
 * files are ignored.
 */
export async function reportedSkills(checkouts: readonly string[]): Promise<ReportedSkill[]> {
  const skills: ReportedSkill[] = [];
  for (const { owner, repo, directory } of checkouts.map(readCheckout)) {
    for (const place of SKILL_DIRECTORIES) {
      for (const entry of (await readdir(join(directory, place), { withFileTypes: true }).catch(() => [])).filter(
        (candidate) => candidate.isDirectory(),
      )) {
        const path = `${place}/${entry.name}/SKILL.md`;
        const content = await textOf(join(directory, path));
        if (content !== undefined) skills.push({ owner, repo, path, content });
      }
    }
  }
  return skills.toSorted((a, b) => (a.path < b.path ? -1 : 1)).slice(0, SKILLS_MAX);
}

async function textOf(file: string): Promise<string | undefined> {
  const found = await lstat(file).catch(() => undefined);
  return found?.isFile() && found.size <= BYTES_MAX ? await readFile(file, "utf8").catch(() => undefined) : undefined;
}
