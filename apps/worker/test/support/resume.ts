import { eventually } from "@millwright/testing";
import { runExecution } from "../../src/harness/run-execution.ts";
import { aContext, snapshotUrl, type ContextOptions, type Event, type TestContext } from "./a-context.ts";

/**
 * Runs an execution until `when` resolves, and then takes its lease away. The next attempt has the events emitted until
 * then.
 */
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

/**
 * Returns the options of the next attempt of a lost execution: its events, its newest checkpoint, and only messages
 * that its agent has not received.
 */
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

/** Returns all earlier and emitted events of a context as events of its execution. */
export const pastOf = ({ history, events, ctx }: Pick<TestContext, "history" | "events" | "ctx">): Event[] => {
  const recorded = history();
  const { executionId, runUid } = ctx.assignment;
  return recorded.map((event, index) =>
    index < recorded.length - events.length ? event : { ...event, executionId, runUid },
  );
};

/** Resolves when the `nth` call has started. */
export const callBegun = (nth: number) => (context: TestContext) =>
  eventually(() => context.events.filter(({ kind }) => kind === "tool_start").length >= nth);
