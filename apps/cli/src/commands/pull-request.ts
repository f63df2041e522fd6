import { table } from "@millwright/terminal";
import { CHOICES } from "../choices.ts";
import { textOption, UsageError, type Command } from "../command.ts";
import { durationText, NAMED_FACTORY, namedFactoryPath, RANGE } from "../metrics-text.ts";

type PullRequest = {
  url: string;
  title: string | null;
  state: string;
  opened_at: string | null;
  additions: number | null;
  deletions: number | null;
  human_interactions: { total: number } | null;
  cycle_time: { kickoff_to_merge: number | null };
};
type Page = { data: PullRequest[]; page_info: { has_next_page: boolean } };

const EXPORT_TYPES: Readonly<Record<string, string>> = { ndjson: "application/x-ndjson", csv: "text/csv" };

const HEADINGS = ["STATE", "OPENED", "LINES", "PEOPLE", "KICKOFF TO MERGE", "PULL REQUEST", "TITLE"];
const rowOf = (pullRequest: PullRequest): string[] => [
  pullRequest.state,
  pullRequest.opened_at ?? "-",
  pullRequest.additions === null ? "-" : `+${pullRequest.additions} -${pullRequest.deletions ?? 0}`,
  pullRequest.human_interactions === null ? "-" : String(pullRequest.human_interactions.total),
  durationText(pullRequest.cycle_time.kickoff_to_merge),
  pullRequest.url,
  pullRequest.title ?? "",
];

/** Pull requests that the runs of a factory produced. */
export const pullRequestCommands: Command[] = [
  {
    words: "pr list",
    args: ["[FACTORY]"],
    options: {
      ...NAMED_FACTORY,
      ...RANGE,
      repo: { type: "string" },
      state: { type: "string", choices: CHOICES.pullRequestStates },
      limit: { type: "string" },
      export: { type: "string", choices: CHOICES.exportFormats },
    },
    summary:
      "List the pull requests that a factory's runs produced, newest first: opened after --since and before --until, of a --repo OWNER/REPO; " +
      "--export prints all.",
    run: async (cli, [factory], values) => {
      const path = await namedFactoryPath(cli, values, factory, "pull-requests");
      const query = {
        repo: textOption(values, "repo"),
        state: textOption(values, "state")?.split(","),
        opened_after: textOption(values, "since"),
        opened_before: textOption(values, "until"),
        limit: textOption(values, "limit"),
      };
      const format = textOption(values, "export");
      if (format?.includes(",")) throw new UsageError("--export takes one format.");
      if (format !== undefined) {
        const text = (await cli.api().download(path, { query, accept: EXPORT_TYPES[format]! })).trimEnd();
        if (format === "ndjson") cli.printJson(text);
        else cli.print(text);
        return;
      }
      const page = await cli.api().get<Page>(path, query);
      const more = page.page_info.has_next_page ? ["There are more: raise --limit, or use --export."] : [];
      cli.show(page.data, () => [table(HEADINGS, page.data.map(rowOf)), ...more].join("\n"));
    },
  },
];
