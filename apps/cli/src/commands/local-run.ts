import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { ApiError } from "@millwright/api-client";
import { EXIT, textOption, type Cli, type Command } from "../command.ts";
import { LocalCommand } from "../local-command.ts";
import { LocalReport } from "../local-report.ts";

type Registered = { run_id: string; state: string; report_every_ms: number };
type Answer = {
  lease: "held" | "stopping" | "over";
  acked_seq: number;
  followups: { followup_id: string; message: string }[];
  state: string;
};

/** Output waits this long for more, so that a chatty command makes few reports. */
const GATHER_MS = 500;
/** A lease is over after the time of so many reports. */
const LEASE_REPORTS = 5;

/** A command that runs here, as a run of the platform. */
export const localRunCommand: Command = {
  words: "run local",
  args: ["COMMAND..."],
  options: { title: { type: "string" }, prompt: { type: "string" } },
  summary: "Execute a command here as a run of the platform: run local -- npm test.",
  run: async (cli, command, values) => {
    const clientId = randomUUID();
    const title = textOption(values, "title");
    const prompt = textOption(values, "prompt");
    const body = { client_id: clientId, command, ...(title && { title }), ...(prompt && { prompt }) };
    const registered = await cli.api().post<Registered>("/agent/runs/local", body, { idempotencyKey: clientId });
    const state = await execute(cli, registered, clientId, command);
    if (values["json"]) cli.show({ run_id: registered.run_id, state }, () => "");
    else cli.printError(`run ${registered.run_id}: ${state.toLowerCase()}`);
    return state === "SUCCEEDED" ? EXIT.done : EXIT.failed;
  },
};

/** Runs the command, and tells the platform of it until it has its end. Answers the state of the run. */
async function execute(
  cli: Cli,
  { run_id: runId, report_every_ms: everyMs }: Registered,
  clientId: string,
  words: readonly string[],
): Promise<string> {
  const report = new LocalReport();
  let wake = (): void => {};
  const command = new LocalCommand(words, cli.env, (stream, text) => {
    report.output(stream, text);
    wake();
  });
  const ended = (async () => {
    report.end(await command.ended());
    wake();
  })();
  const given = new Set<string>();
  for (;;) {
    if (report.isEmpty)
      await Promise.race([new Promise<void>((resolve) => (wake = resolve)), delay(everyMs, undefined, { ref: false })]);
    if (!report.isOver) await Promise.race([ended, delay(Math.min(GATHER_MS, everyMs))]);
    const answer = await send(cli, runId, clientId, report, everyMs);
    report.acknowledged(answer.acked_seq);
    if (answer.lease !== "held") {
      if (!report.isOver)
        cli.printError(
          `millwright: the platform ended this run (${answer.state.toLowerCase()}); the command is stopped.`,
        );
      if (!report.isOver) command.stop();
      await ended;
      return answer.state;
    }
    for (const { followup_id: uid, message } of answer.followups) {
      if (given.has(uid) || report.isOver || !command.say(message)) continue;
      given.add(uid);
      report.followupReceived(uid);
    }
  }
}

/**
 * Sends what is pending, again and again while the platform does not answer: whether the run is still ours, it says itself. Errors: a
 * refusal; after the end of the command, no answer for as long as the platform would have waited for us.
 */
async function send(cli: Cli, runId: string, clientId: string, report: LocalReport, everyMs: number): Promise<Answer> {
  for (let waitedMs = 0; ; waitedMs += report.isOver ? everyMs : 0) {
    try {
      return await cli
        .api()
        .post<Answer>(
          `/agent/runs/${runId}/report`,
          { client_id: clientId, events: report.next() },
          { signal: AbortSignal.timeout(3 * everyMs) },
        );
    } catch (error) {
      const isRefused = error instanceof ApiError && error.status < 500 && error.status !== 429;
      if (isRefused || waitedMs > LEASE_REPORTS * everyMs) throw error;
      await delay(everyMs);
    }
  }
}
