import { expect } from "@jest/globals";
import { eventually, timeoutFactor } from "@millwright/testing";
import type { Client } from "./client.ts";

/** Longest time for a short scripted run on a busy machine, in milliseconds. */
export const RUN_TIMEOUT_MS = 120_000 * timeoutFactor();
const ENDED = ["SUCCEEDED", "FAILED", "ERROR", "BLOCKED", "CANCELLED"];

/** Returns a scripted prompt. Each step is YAML, on one or more lines. */
export const script = (...steps: string[]): string =>
  ["````scripted", ...steps.map((step) => `- ${step.replaceAll("\n", "\n  ")}`), "````"].join("\n");

/** Returns a step that starts a child run with a prompt of its own. */
export const spawn = (prompt: string, agent?: string): string =>
  [
    "spawn:",
    ...(agent ? [`  agent: ${agent}`] : []),
    "  prompt: |",
    ...prompt.split("\n").map((line) => `    ${line}`),
  ].join("\n");

/** Creates a run and returns its id. */
export const startRun = async (api: Client, prompt: string, body: object = {}): Promise<string> =>
  (await api.post("/agent/runs", { prompt, ...body })).run_id;

export const runOf = (api: Client, runId: string): Promise<any> => api.get(`/agent/runs/${runId}`);

/** Waits until the run is in one of the states and returns it. Throws with its status message if it never is. */
export function waitForState(api: Client, runId: string, ...states: string[]): Promise<any> {
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

/** Waits until the run is terminal and returns it. */
export const ended = (api: Client, runId: string): Promise<any> => waitForState(api, runId, ...ENDED);

/** Waits until the run is terminal, expects SUCCEEDED and returns it. */
export async function succeeded(api: Client, runId: string): Promise<any> {
  const run = await ended(api, runId);
  expect([run.state, run.status_message?.message]).toEqual(["SUCCEEDED", run.status_message?.message]);
  return run;
}

/** Returns all events of a run; reads them page by page. */
export async function eventsOf(api: Client, runId: string, limit = 500): Promise<any[]> {
  const events: any[] = [];
  for (let query = `limit=${limit}`; ;) {
    const page = await api.get(`/agent/runs/${runId}/events?${query}`);
    events.push(...page.events);
    if (!page.page_info.has_next_page) return events;
    query = `limit=${limit}&cursor=${page.page_info.next_cursor}`;
  }
}

/**
 * Returns the events of a run. If a call was repeated after its worker or workspace was lost, only the events of its
 * last execution are included.
 */
export async function effectiveEventsOf(api: Client, runId: string): Promise<any[]> {
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

/** Waits for an event of the run that fulfils the condition and returns it. */
export const waitForEvent = (api: Client, runId: string, wanted: (event: any) => boolean): Promise<any> =>
  eventually(async () => (await eventsOf(api, runId)).find(wanted) ?? false, {
    timeoutMs: RUN_TIMEOUT_MS,
    everyMs: 100,
  });

/** Returns the outputs of the run's shell steps in order. */
export const shellOutputs = async (api: Client, runId: string): Promise<string[]> =>
  (await effectiveEventsOf(api, runId))
    .filter(({ kind, payload }) => kind === "tool_end" && payload.name === "run_command")
    .map(({ payload }) => payload.output.output);
