import { runExecution } from "../../src/harness/run-execution.ts";
import { aContext, type ContextOptions, type Event, type TestContext } from "./a-context.ts";

/** Returns a prompt with these steps. It uses four backticks, so that steps may contain scripts. */
export const script = (...lines: string[]) => ["````scripted", ...lines, "````"].join("\n");

export const kinds = (events: readonly Event[]) => events.map(({ kind }) => kind);
export const ends = (events: readonly Event[]) =>
  events.filter(({ kind }) => kind === "tool_end").map(({ payload }) => payload);
export const assistantTexts = (events: readonly Event[]) =>
  events
    .filter(({ kind, payload }) => kind === "model_step" && payload["text"] !== "")
    .map(({ payload }) => payload["text"]);

/** Runs one execution to its end and waits until its sandboxes have ended. */
export async function execute(options: ContextOptions) {
  const context = aContext(options);
  const result = await runExecution(context.ctx);
  await Promise.all(context.sandboxes.map((sandbox) => sandbox.gone));
  return { result, ...context };
}

/** Starts an execution and calls `act` while it runs. */
export async function during(options: ContextOptions, act: (context: TestContext) => Promise<void>) {
  const context = aContext(options);
  const running = runExecution(context.ctx);
  running.catch(() => undefined);
  await act(context);
  return { running, ...context };
}
