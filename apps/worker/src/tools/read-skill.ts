import { z } from "zod";
import { defineTool } from "./tool.ts";
import { ToolFailure } from "./tool-failure.ts";

export const readSkill = defineTool({
  name: "read_skill",
  action: "read_skill",
  category: "skill",
  description:
    "Reads one of the procedures (skills) that the instructions list, by its name. Read it before you do what it describes.",
  isReadOnly: true,
  isParallel: true,
  changes: "nothing",
  input: z.object({ name: z.string().min(1) }),
  shown: ({ name }) => ({ skill_path: name }),
  async run({ name }, { skills }) {
    const all = await skills.all();
    const skill = all.find(({ name: known, path }) => known === name || path === name);
    if (!skill)
      throw new ToolFailure(
        `There is no skill "${name}"; there ${all.length === 0 ? "is none" : `are ${all.map((known) => known.name).join(", ")}`}.`,
      );
    return { output: { skill_path: skill.path, description: skill.description, content: skill.body } };
  },
});
