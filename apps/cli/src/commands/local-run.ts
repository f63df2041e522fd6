import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { ApiError } from "@millwright/api-client";
import { EXIT, textOption, type Cli, type Command } from "../command.ts";
import { LocalCommand } from "../local-command.ts";
import { LocalReport } from "../local-report.ts";

type Registered = { run_id: string; state: string; report_every_ms: number };
type ReportResponse = {
  lease: "held" | "stopping" | "over";
  acked_seq: number;
  followups: { followup_id: string; message: string }[];
  state: string;
};

/** Output is batched for this time, so that a command with much output causes few reports. */
const BATCH_MS = 500;
/** After this many report intervals without a report the lease has expired: 45 s at an interval of 10 s. */
const LEASE_REPORTS = 5;

/** Executes a command on this machine as a run of the platform. */
export const localRunCommand: Command = {
  words: "run local",
  args: ["COMMAND..."],
  options: { title: { type: "string" }, prompt: { type: "string" } },
  summary: "Execute a command here as a run of the platform: run local -- npm test.",
  run: async (cli, command, values) => {
    const clientId = randomUUID();
    const title = textOption(values, "title");
    const prompt = textOption(values, "prompt");
    const body = { client_id: clientId, command, title: title || undefined, prompt: prompt || undefined };
    const registered = await cli.api().post<Registered>("/agent/runs/local", body, { idempotencyKey: clientId });
    const state = await execute(cli, registered, clientId, command);
    if (values["json"]) cli.show({ run_id: registered.run_id, state }, () => "");
    else cli.printError(`run ${registered.run_id}: ${state.toLowerCase()}`);
    return state === "SUCCEEDED" ? EXIT.done : EXIT.failed;
  },
};

/** Executes the command and reports it to the platform until the platform has its end. Returns the state of the run. */
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
  const forwardedFollowups = new Set<string>();
  for (;;) {
    if (report.isEmpty)
      await Promise.race([new Promise<void>((resolve) => (wake = resolve)), delay(everyMs, undefined, { ref: false })]);
    if (!report.hasEnded) await Promise.race([ended, delay(Math.min(BATCH_MS, everyMs))]);
    const response = await send(cli, runId, clientId, report, everyMs);
    report.acknowledged(response.acked_seq);
    if (response.lease !== "held") {
      if (!report.hasEnded)
        cli.printError(
          `millwright: the platform ended this run (${response.state.toLowerCase()}); the command is stopped.`,
        );
      if (!report.hasEnded) command.stop();
      await ended;
      return response.state;
    }
    for (const { followup_id: uid, message } of response.followups) {
      if (forwardedFollowups.has(uid) || report.hasEnded || !command.writeLine(message)) continue;
      forwardedFollowups.add(uid);
      report.followupReceived(uid);
    }
  }
}

/**
 * Sends pending events and retries while the platform does not respond. Throws if the platform refuses them, or if the
 * command has ended and the platform has not responded for the length of a lease.
 */
async function send(
  cli: Cli,
  runId: string,
  clientId: string,
  report: LocalReport,
  everyMs: number,
): Promise<ReportResponse> {
  for (let waitedMs = 0; ; waitedMs += report.hasEnded ? everyMs : 0) {
    try {
      return await cli
        .api()
        .post<ReportResponse>(
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
