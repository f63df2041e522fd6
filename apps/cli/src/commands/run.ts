import { describeRunEvent, table, type RunEventJson } from "@millwright/terminal";
import { CHOICES } from "../choices.ts";
import { EXIT, textOption, textOptions, UsageError, type Cli, type Command, nonEmpty } from "../command.ts";
import { readText } from "../files.ts";
import { listAll } from "../list-all.ts";
import { attachmentInputs, uploadFor } from "./attached-files.ts";

type Run = {
  run_id: string;
  state: string;
  title: string;
  created_at: string;
  finished_at?: string | null;
  session_link?: string;
  status_message?: { message: string; session_debug_until?: string };
  request_usage?: { total_tokens?: number; inference_cost_usd?: number };
};

type TerminalBlock = { command: string; output: string; exit_code: number | null; state: string };

const MARKS = { start: "·", say: "»", work: "✓", done: "●", fail: "✗", wait: "…", note: "!" } as const;

/**
 * Prints the run and its link, then one line for each event that people read, until the run ends; with `--json` the
 * events themselves. Returns the exit code.
 */
async function watch(cli: Cli, runId: string): Promise<number> {
  const current = () => cli.api().get<Run>(`/agent/runs/${runId}`);
  const { session_link: link } = await current();
  if (!cli.isJson) cli.print([`run ${runId}`, ...(link ? [link] : [])].join("\n"));
  for await (const { event, data } of cli.api().events(`/agent/runs/${runId}/events`)) {
    if (event === "text_delta") continue; // the step that has it whole comes soon
    const runEvent = JSON.parse(data) as RunEventJson;
    printEvent(cli, runEvent, data);
    // The stream continues while a debug window is open, and contains the ends of earlier executions.
    const run = runEvent.kind === "run_finished" ? await current() : undefined;
    if (run?.finished_at && runEvent.occurred_at >= run.finished_at) return ended(cli, run);
  }
  return ended(cli, await current());
}

function printEvent(cli: Cli, event: RunEventJson, data: string): void {
  if (cli.isJson) return cli.printJson(data);
  const line = describeRunEvent(event);
  if (!line) return;
  cli.print(`${MARKS[line.mark]} ${line.text}`);
  for (const detail of line.detail ?? []) cli.print([{ text: `    ${detail}`, style: "dim" }]);
}

/** Prints an open debug window. Returns the exit code for a run's final state. */
function ended(cli: Cli, { run_id: id, state, status_message: status }: Run): number {
  const until = status?.session_debug_until;
  if (until && !cli.isJson)
    cli.print(
      `! debug window open until ${until}: millwright run follow-up ${id} MESSAGE sends MESSAGE to the retained workspace`,
    );
  return state === "SUCCEEDED" ? EXIT.done : EXIT.failed;
}

/** Returns the tokens and cost of its model calls; no cost if there is no price. */
function spentBy({ request_usage: usage }: Run): string[] {
  if (!usage?.total_tokens) return [];
  return [
    `${usage.total_tokens} tokens${usage.inference_cost_usd === undefined ? "" : `, $${usage.inference_cost_usd.toFixed(6)}`}`,
  ];
}

/** Runs: create, watch, control, cancel. */
export const runCommands: Command[] = [
  {
    words: "run create",
    args: ["[PROMPT]"],
    options: {
      file: { type: "string" },
      title: { type: "string" },
      model: { type: "string" },
      environment: { type: "string" },
      agent: { type: "string" },
      attach: { type: "string", multiple: true },
      watch: { type: "boolean" },
    },
    summary:
      "Start a run with a prompt (or --file FILE) and files (--attach FILE, repeatable), as an agent (--agent UID); --watch prints its events.",
    run: async (cli, [prompt], values) => {
      const file = textOption(values, "file");
      const body = file ? await readText(file) : prompt;
      if (!body) throw new UsageError("Give a PROMPT or --file FILE.");
      const attachments = await attachmentInputs(textOptions(values, "attach"));
      const made = await cli.api().post<{ run_id: string; state: string }>("/agent/runs", {
        prompt: body,
        attachments: nonEmpty(attachments),
        title: textOption(values, "title") || undefined,
        agent_identity_uid: textOption(values, "agent") || undefined,
        config: {
          model_id: textOption(values, "model") || undefined,
          environment_id: textOption(values, "environment") || undefined,
        },
      });
      if (!values["watch"]) return cli.show(made, () => `run ${made.run_id} is ${made.state.toLowerCase()}.`);
      return watch(cli, made.run_id);
    },
  },
  {
    words: "run list",
    args: [],
    options: { state: { type: "string", choices: CHOICES.runStates }, limit: { type: "string" } },
    summary: "List runs, most recently changed first.",
    run: async (cli, _args, values) => {
      const { runs } = await cli.api().get<{ runs: Run[] }>("/agent/runs", {
        state: textOption(values, "state"),
        limit: textOption(values, "limit"),
      });
      cli.show(runs, () =>
        table(
          ["RUN", "STATE", "CREATED", "TITLE"],
          runs.map((run) => [run.run_id, run.state, run.created_at, run.title]),
        ),
      );
    },
  },
  {
    words: "run get",
    args: ["RUN"],
    summary: "Show a run, and why it is queued.",
    run: async (cli, [id]) => {
      const run = await cli.api().get<Run>(`/agent/runs/${id}`);
      const why =
        run.state === "QUEUED"
          ? (await cli.api().get<{ message: string }>(`/agent/runs/${id}/queue`)).message
          : run.status_message?.message;
      cli.show(run, () =>
        [
          run.title,
          `${run.state}${why === undefined ? "" : `: ${why}`}`,
          ...spentBy(run),
          ...(run.session_link ? [run.session_link] : []),
        ].join("\n"),
      );
    },
  },
  {
    words: "run watch",
    args: ["RUN"],
    summary: "Print the events of a run until it ends; exit code 1 if it did not succeed.",
    run: (cli, [id]) => watch(cli, id!),
  },
  {
    words: "run cancel",
    args: ["RUN"],
    options: { tree: { type: "boolean" } },
    summary: "Cancel a run; --tree cancels its descendants too.",
    run: async (cli, [id], values) => {
      await cli.api().request("POST", `/agent/runs/${id}/cancel`, values["tree"] ? { query: { tree: true } } : {});
      cli.show({ run_id: id, cancelled: true }, () => `run ${id} is cancelled.`);
    },
  },
  {
    words: "run retry",
    args: ["RUN"],
    options: { watch: { type: "boolean" } },
    summary: "Retry an ended run as a new run with the same configuration; --watch prints its events.",
    run: async (cli, [id], values) => {
      const made = await cli.api().post<{ run_id: string; state: string }>(`/agent/runs/${id}/retry`);
      if (!values["watch"]) return cli.show(made, () => `run ${made.run_id} is ${made.state.toLowerCase()}.`);
      return watch(cli, made.run_id);
    },
  },
  {
    words: "run interrupt",
    args: ["RUN"],
    summary: "Interrupt the current turn of a run; it continues with the next message.",
    run: async (cli, [id]) => {
      const result = await cli.api().post<{ run_id: string }>(`/agent/runs/${id}/interrupt`);
      cli.show(result, () => `Interrupted the turn of ${result.run_id}.`);
    },
  },
  {
    words: "run follow-ups",
    args: ["RUN"],
    summary: "List a run's follow-ups and whether they were delivered.",
    run: async (cli, [id]) => {
      type FollowUp = { message: string; state: string; reason?: string; created_at: string };
      const followups = await listAll<FollowUp>(cli, `/agent/runs/${id}/followups`, "followups", { limit: "100" });
      cli.show(followups, () =>
        table(
          ["SENT", "STATE", "MESSAGE"],
          followups.map((followup) => [
            followup.created_at,
            followup.reason ? `${followup.state} (${followup.reason})` : followup.state,
            followup.message,
          ]),
        ),
      );
    },
  },
  {
    words: "run follow-up",
    args: ["RUN", "[MESSAGE]"],
    options: { attach: { type: "string", multiple: true } },
    summary: "Send a message and files (--attach FILE, repeatable) to a run in any state.",
    run: async (cli, [id, message], values) => {
      const paths = textOptions(values, "attach");
      if (message === undefined && paths.length === 0) throw new UsageError("Give a MESSAGE or --attach FILE.");
      const attachments = await uploadFor(cli, id!, paths);
      const result = await cli.api().post<{ outcome: string }>(`/agent/runs/${id}/followups`, {
        message: message ?? "",
        attachments: nonEmpty(attachments),
      });
      cli.show(result, () => `accepted: ${result.outcome}`);
    },
  },
  {
    words: "run commands",
    args: ["RUN"],
    summary: "Print the commands of a run's conversation with their output.",
    run: async (cli, [id]) => {
      const { conversation_id: conversation } = await cli.api().get<{ conversation_id: string }>(`/agent/runs/${id}`);
      const { blocks } = JSON.parse(
        await cli.api().download(`/agent/conversations/${conversation}/block-snapshot`),
      ) as { blocks: TerminalBlock[] };
      cli.show(blocks, () =>
        blocks.flatMap(({ command, output, exit_code: code, state }) => [
          { text: `$ ${command}`, style: "bold" as const },
          { text: `\n${output}${code === 0 ? "" : `[${code ?? state}]\n`}` },
        ]),
      );
    },
  },
  {
    words: "run transcript",
    args: ["RUN"],
    summary: "Print a run's transcript (JSON Lines).",
    run: async (cli, [id]) => cli.printJson((await cli.api().download(`/agent/runs/${id}/transcript`)).trimEnd()),
  },
];
