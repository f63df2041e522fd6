import { expect } from "@jest/globals";
import { eventually, timeoutFactor } from "@millwright/testing";
import type { Client } from "./client.ts";

/** The longest a short scripted run may take on a busy machine. */
export const RUN_TIMEOUT_MS = 120_000 * timeoutFactor();
const ENDED = ["SUCCEEDED", "FAILED", "ERROR", "BLOCKED", "CANCELLED"];

/** A prompt whose steps are taken as they stand. A step is one line of YAML, or the lines of one. */
export const script = (...steps: string[]): string =>
  ["````scripted", ...steps.map((step) => `- ${step.replaceAll("\n", "\n  ")}`), "````"].join("\n");

/** A step that starts a child run with steps of its own. */
export const spawn = (prompt: string, agent?: string): string =>
  [
    "spawn:",
    ...(agent ? [`  agent: ${agent}`] : []),
    "  prompt: |",
    ...prompt.split("\n").map((line) => `    ${line}`),
  ].join("\n");

/** Queues a run; answers its id. */
export const startRun = async (api: Client, prompt: string, body: object = {}): Promise<string> =>
  (await api.post("/agent/runs", { prompt, ...body })).run_id;

export const runOf = (api: Client, runId: string): Promise<any> => api.get(`/agent/runs/${runId}`);

/** The run once it is in one of the states. Errors: when it never is, with what became of it. */
export function reached(api: Client, runId: string, ...states: string[]): Promise<any> {
  return eventually(
    async () => {
      const run = await runOf(api, runId);
      if (states.includes(run.state)) return run;
      throw new Error(
        `Run ${runId} is ${run.state}, not ${states.join(" or ")}: ${JSON.stringify(run.status_message)}`,
      );
    },
    { timeoutMs: RUN_TIMEOUT_MS, everyMs: 100 },
  );
}

/** The run once it has ended, however it did. */
export const ended = (api: Client, runId: string): Promise<any> => reached(api, runId, ...ENDED);

/** The run once it has ended; it must have succeeded. */
export async function succeeded(api: Client, runId: string): Promise<any> {
  const run = await ended(api, runId);
  expect([run.state, run.status_message?.message]).toEqual(["SUCCEEDED", run.status_message?.message]);
  return run;
}

/** Every event of a run, page by page. */
export async function eventsOf(api: Client, runId: string, limit = 500): Promise<any[]> {
  const events: any[] = [];
  for (let query = `limit=${limit}`; ;) {
    const page = await api.get(`/agent/runs/${runId}/events?${query}`);
    events.push(...page.events);
    if (!page.page_info.has_next_page) return events;
    query = `limit=${limit}&cursor=${page.page_info.next_cursor}`;
  }
}

/** The events of a run. Of a call that was made again because its worker or workspace was lost, those that came last. */
export async function toldEventsOf(api: Client, runId: string): Promise<any[]> {
  const events = await eventsOf(api, runId);
  const callOf = ({ kind, payload }: any): string | undefined =>
    ["model_step", "tool_start", "tool_end"].includes(kind)
      ? (payload.call_id ?? payload.tool_calls?.[0]?.call_id)
      : undefined;
  const last = new Map(events.map((event, index) => [`${event.kind} ${callOf(event)}`, index]));
  return events.filter(
    (event, index) => callOf(event) === undefined || last.get(`${event.kind} ${callOf(event)}`) === index,
  );
}

/** Asks until some event of the run is as wanted. */
export const sees = (api: Client, runId: string, wanted: (event: any) => boolean): Promise<any> =>
  eventually(async () => (await eventsOf(api, runId)).find(wanted) ?? false, {
    timeoutMs: RUN_TIMEOUT_MS,
    everyMs: 100,
  });

/** The outputs of the run's shell steps, in order. */
export const shellOutputs = async (api: Client, runId: string): Promise<string[]> =>
  (await toldEventsOf(api, runId))
    .filter(({ kind, payload }) => kind === "tool_end" && payload.name === "run_command")
    .map(({ payload }) => payload.output.output);
