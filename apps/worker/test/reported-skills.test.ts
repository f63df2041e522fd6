import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "@jest/globals";
import { reportedSkills } from "../src/protocol/reported-skills.ts";

const root = mkdtempSync(join(tmpdir(), "millwright-checkouts-"));
afterAll(() => rmSync(root, { recursive: true }));

test("skills of checkouts are reported, without links and too long ones; missing ones are ignored", async () => {
  for (const place of ["skills/a", ".claude/skills/b", ".agents/skills/c", "skills/long", "skills/empty", "docs/d"])
    mkdirSync(join(root, "shop", place), { recursive: true });
  for (const place of ["skills/a", ".claude/skills/b", "docs/d"])
    writeFileSync(join(root, "shop", place, "SKILL.md"), place);
  writeFileSync(join(root, "shop/skills/long/SKILL.md"), "x".repeat(64 * 1024 + 1));
  symlinkSync("/etc/passwd", join(root, "shop/.agents/skills/c/SKILL.md"));
  symlinkSync(join(root, "shop/skills/a"), join(root, "shop/skills/linked"));
  expect(await reportedSkills([`acme/shop=${root}/shop`, `acme/absent=${root}/absent`])).toEqual([
    { owner: "acme", repo: "shop", path: ".claude/skills/b/SKILL.md", content: ".claude/skills/b" },
    { owner: "acme", repo: "shop", path: "skills/a/SKILL.md", content: "skills/a" },
  ]);
});
