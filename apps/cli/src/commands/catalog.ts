import { table } from "@millwright/terminal";
import { CHOICES } from "../choices.ts";
import { textOption, type Command } from "../command.ts";

type Skill = {
  name: string;
  variants: { id: string; description: string; error?: string; last_run_timestamp?: string | null }[];
};
type Model = { id: string; provider: string; disabled: boolean; disabled_message?: string };

/** What runs can use: skills and models, and where their requests come from. */
export const catalogCommands: Command[] = [
  {
    words: "skill list",
    args: [],
    options: {
      repo: { type: "string" },
      sort: { type: "string", choices: CHOICES.skillOrders },
      refresh: { type: "boolean" },
      malformed: { type: "boolean" },
    },
    summary: "List skills (--repo OWNER/REPO, --sort name|last_run, --refresh, --malformed).",
    run: async (cli, _args, values) => {
      const query = new URLSearchParams();
      const [repo, sort] = [textOption(values, "repo"), textOption(values, "sort")];
      if (repo) query.set("repo", repo);
      if (sort) query.set("sort_by", sort);
      if (values["refresh"]) query.set("refresh", "true");
      if (values["malformed"]) query.set("include_malformed_skills", "true");
      const { agents } = await cli
        .api()
        .get<{ agents: Skill[] }>(`/agent${query.size > 0 ? `?${query.toString()}` : ""}`);
      const rows = agents.flatMap(({ name, variants }) =>
        variants.map((variant) => [
          name,
          variant.id,
          variant.last_run_timestamp ?? "",
          variant.error ?? variant.description,
        ]),
      );
      cli.show(agents, () => table(["SKILL", "ID", "LAST RUN", "DESCRIPTION"], rows));
    },
  },
  {
    words: "model list",
    args: [],
    summary: "List models, the default first, and what would enable the disabled ones.",
    run: async (cli) => {
      const listed = await cli.api().get<{ default_model_id: string; models: Model[] }>("/agent/models");
      const rows = listed.models.map(({ id, provider, disabled, disabled_message: why }) => [
        id,
        provider,
        id === listed.default_model_id ? "default" : disabled ? "disabled" : "",
        why ?? "",
      ]);
      cli.show(listed, () => table(["MODEL", "PROVIDER", "", "WHY"], rows));
    },
  },
  {
    words: "egress-ranges",
    args: [],
    summary: "List the source networks of the platform's workers.",
    run: async (cli) => {
      const listed = await cli.api().get<{ cidrs: string[] }>("/networking/egress-ranges");
      cli.show(listed, () => listed.cidrs.join("\n"));
    },
  },
];
