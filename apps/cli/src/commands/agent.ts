import { table } from "@millwright/terminal";
import { textOption, textOptions, UsageError, type Command, nonEmpty } from "../command.ts";
import { readText } from "../files.ts";
import { FACTORY, factoryUid } from "../which-factory.ts";

type Agent = { uid: string; name: string; available: boolean; description?: string | null };

/** Agents: identities with instructions of their own that execute runs. */
export const agentCommands: Command[] = [
  {
    words: "agent create",
    args: ["NAME"],
    options: {
      ...FACTORY,
      prompt: { type: "string" },
      file: { type: "string" },
      description: { type: "string" },
      model: { type: "string" },
      environment: { type: "string" },
      secret: { type: "string", multiple: true },
      skill: { type: "string", multiple: true },
    },
    summary:
      "Create an agent in the team, or in a factory (--factory); its instructions come from --prompt TEXT or --file FILE.",
    run: async (cli, [name], values) => {
      const file = textOption(values, "file");
      if (file !== undefined && textOption(values, "prompt") !== undefined)
        throw new UsageError("Give --prompt TEXT or --file FILE, not both.");
      const [secrets, skills] = [textOptions(values, "secret"), textOptions(values, "skill")];
      const made = await cli.api().post<Agent>("/agent/identities", {
        name,
        prompt: file === undefined ? textOption(values, "prompt") : await readText(file),
        description: textOption(values, "description"),
        base_model: textOption(values, "model"),
        environment_id: textOption(values, "environment"),
        secrets: nonEmpty(secrets.map((secret) => ({ name: secret }))),
        skills: nonEmpty(skills),
        ...(textOption(values, "factory") !== undefined && { factory_uid: await factoryUid(cli, values) }),
      });
      cli.show(made, () => `agent ${made.uid} (${made.name})`);
    },
  },
  {
    words: "agent list",
    args: [],
    options: FACTORY,
    summary: "List the team's agents, newest first; with --factory those of a factory.",
    run: async (cli, _args, values) => {
      const factory = textOption(values, "factory") === undefined ? undefined : await factoryUid(cli, values);
      const { agents } = await cli.api().get<{ agents: Agent[] }>("/agent/identities", { factory_uid: factory });
      const rows = agents.map(({ uid, name, available, description }) => [
        uid,
        name,
        available ? "yes" : "no",
        description ?? "",
      ]);
      cli.show(agents, () => table(["AGENT", "NAME", "AVAILABLE", "DESCRIPTION"], rows));
    },
  },
];
