import { runExecution } from "../../src/harness/run-execution.ts";
import { aContext, type ContextOptions, type Event, type TestContext } from "./a-context.ts";

/** A prompt that holds these steps; four backticks, so that steps may hold scripts. */
export const script = (...lines: string[]) => ["````scripted", ...lines, "````"].join("\n");

export const kinds = (events: readonly Event[]) => events.map(({ kind }) => kind);
export const ends = (events: readonly Event[]) =>
  events.filter(({ kind }) => kind === "tool_end").map(({ payload }) => payload);
export const said = (events: readonly Event[]) =>
  events
    .filter(({ kind, payload }) => kind === "model_step" && payload["text"] !== "")
    .map(({ payload }) => payload["text"]);

/** Runs one execution to its end; nothing of it may be left. */
export async function execute(options: ContextOptions) {
  const context = aContext(options);
  const result = await runExecution(context.ctx);
  await Promise.all(context.sandboxes.map((sandbox) => sandbox.gone));
  return { result, ...context };
}

/** Starts one and hands it over while it runs. */
export async function during(options: ContextOptions, act: (context: TestContext) => Promise<void>) {
  const context = aContext(options);
  const running = runExecution(context.ctx);
  running.catch(() => undefined);
  await act(context);
  return { running, ...context };
}
