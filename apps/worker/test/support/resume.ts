import { eventually } from "@millwright/testing";
import { runExecution } from "../../src/harness/run-execution.ts";
import { aContext, snapshotUrl, type ContextOptions, type Event, type TestContext } from "./a-context.ts";

/** Runs an execution until `when` resolves, and takes its lease away. What it had told by then is what the next attempt has. */
export async function losing(
  options: ContextOptions,
  when: (context: TestContext) => Promise<unknown>,
): Promise<TestContext> {
  const context = aContext(options);
  const running = runExecution(context.ctx);
  await when(context);
  context.lose();
  await running.catch(() => undefined);
  await Promise.all(context.sandboxes.map((sandbox) => sandbox.gone));
  return context;
}

/** What the next attempt of a lost execution is given: its events, its newest checkpoint, and only such messages as its agent has not seen. */
export function nextAttempt(lost: TestContext, options: ContextOptions): ContextOptions {
  const { executionId, attempt, runUid } = lost.ctx.assignment;
  const isSaved = lost.events.some(({ kind, payload }) => kind === "checkpoint" && payload["snapshot_key"] !== "");
  const url = isSaved ? snapshotUrl(lost.ctx.dir) : lost.ctx.assignment.snapshotUrl;
  return {
    ...options,
    history: pastOf(lost),
    assignment: {
      ...options.assignment,
      executionId,
      runUid,
      attempt: attempt + 1,
      restarted: true,
      inputs: [],
      snapshotUrl: url,
    },
  };
}

/** Everything a context knew and told, as events of its execution. */
export const pastOf = ({ history, events, ctx }: Pick<TestContext, "history" | "events" | "ctx">): Event[] => {
  const told = history();
  const { executionId, runUid } = ctx.assignment;
  return told.map((event, index) => (index < told.length - events.length ? event : { ...event, executionId, runUid }));
};

/** The `nth` call has begun. */
export const callBegun = (nth: number) => (context: TestContext) =>
  eventually(() => context.events.filter(({ kind }) => kind === "tool_start").length >= nth);
