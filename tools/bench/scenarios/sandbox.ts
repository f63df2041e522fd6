import { ApiClient } from "@millwright/api-client";
import { API_KEY, type Platform } from "../platform.ts";
import type { Measured } from "../results.ts";
import { summarize } from "../samples.ts";

const WARM_UP = 3;
const PROMPT = "````scripted\n- say: hello\n````";

/**
 * Measures the time from the request until a subscribed client receives the first model step of an agent in a new
 * sandbox.
 */
export async function measureSandbox(platform: Platform, isQuick: boolean): Promise<Measured[]> {
  const api = new ApiClient({ url: platform.url, apiKey: API_KEY });
  const latencies: number[] = [];
  for (let n = 0; n < WARM_UP + (isQuick ? 5 : 30); n++) {
    const ms = await timeToFirstStep(api);
    if (n >= WARM_UP) latencies.push(ms);
  }
  return [{ what: "sandboxed run, to its first event", who: "millwright", latencyMs: summarize(latencies) }];
}

async function timeToFirstStep(api: ApiClient): Promise<number> {
  const beganMs = performance.now();
  const { run_id: runId } = await api.post<{ run_id: string }>("/agent/runs", { prompt: PROMPT });
  let stepMs: number | undefined;
  for await (const { data } of api.events(`/agent/runs/${runId}/events`)) {
    if ((JSON.parse(data) as { kind: string }).kind === "model_step") stepMs ??= performance.now() - beganMs;
  }
  if (stepMs === undefined) throw new Error("The run ended without a model step.");
  return stepMs;
}
