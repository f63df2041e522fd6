import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { DomainError } from "@millwright/errors";
import { newUid } from "@millwright/ids";
import { EVENTS_PER_RUN_MAX } from "../src/runs/domain/run-events.ts";
import type { Run, RunStatus } from "../src/runs/domain/run.ts";
import type { NewRun } from "../src/runs/domain/new-run.ts";
import { acceptExecution, startExecution, type ActiveExecution } from "./support/fake-worker.ts";
import { aCaller, aRun, frozenFor, resolvedFor, teamOf, testPlatform, type TestPlatform } from "./support/platform.ts";

let platform: TestPlatform;
beforeAll(async () => {
  platform = await testPlatform({
    resolveRun: async (_caller, request) => ({
      ...resolvedFor(request),
      frozen: {
        ...frozenFor(request),
        on_worker_loss: request.config["on_worker_loss"] === "fail" ? ("fail" as const) : undefined,
      },
    }),
    prepareAssignment: async ({ title }) => {
      if (title === "no secret")
        throw new DomainError({ kind: "not_found", reason: "secret_not_found", message: "No such secret." });
      return { repositories: [], secrets: {} };
    },
  });
});
afterAll(() => platform.close());

type Scene = Awaited<ReturnType<typeof scene>>;

/** Creates a team with one run and a worker of its own. */
async function scene(request: Partial<NewRun> = {}) {
  const caller = aCaller();
  const worker = await platform.worker({ teamUid: teamOf(caller) });
  const run = await platform.run(caller, request);
  const { sql } = platform.database;
  return {
    caller,
    worker,
    run,
    taken: () => acceptExecution(platform, worker),
    started: () => startExecution(platform, worker),
    cancel: (runUid: string = run.uid, tree = false) => platform.life.cancelRun(caller, { runUid, tree }),
    reap: () => platform.reaperIsAwake().then(() => platform.life.reapOnce()),
    long: (column: "claimed_at" | "started_at") =>
      sql.query(`UPDATE executions SET ${column} = 'epoch' WHERE run_uid = $1`, [run.uid]),
  };
}

/** Loses the worker of the run repeatedly. */
async function lose({ taken, started, reap }: Scene, times: number, isStarted: boolean): Promise<void> {
  for (let n = 0; n < times; n++) {
    const { ref } = await (isStarted ? started() : taken());
    await platform.expire(ref.executionId);
    await reap();
  }
}

const complete = async (
  execution: ActiveExecution,
  outcome: "DONE" | "FAILED" | "ERROR" | "BLOCKED" | "CANCELLED",
  error?: { code: string; reason: string },
) => execution.complete(outcome, error ? { error: { ...error, message: "Why.", retryable: false } } : {});

/** How a run ends, and its resulting state, error code and cause. */
type End = readonly [
  how: string,
  act: () => Promise<{ caller: Scene["caller"]; run: Pick<Run, "uid"> }>,
  state: Run["state"],
  code: RunStatus["errorCode"],
  reason: string,
];

const after = (act: (on: Scene) => Promise<unknown>, request?: Partial<NewRun>) => async () => {
  const on = await scene(request);
  await act(on);
  return on;
};

const ENDS: readonly End[] = [
  [
    "its agent is done",
    after(async ({ started }) => complete(await started(), "DONE")),
    "SUCCEEDED",
    undefined,
    "completed",
  ],
  [
    "its agent asks something",
    after(async ({ started }) => complete(await started(), "BLOCKED")),
    "BLOCKED",
    undefined,
    "awaiting_input",
  ],
  [
    "its agent gives up, with a cause",
    after(async ({ started }) =>
      complete(await started(), "FAILED", { code: "invalid_request", reason: "script_failed" }),
    ),
    "FAILED",
    "invalid_request",
    "script_failed",
  ],
  [
    "its agent gives up, without a finer cause",
    after(async ({ started }) => complete(await started(), "FAILED", { code: "budget_exceeded", reason: "" })),
    "FAILED",
    "budget_exceeded",
    "budget_exceeded",
  ],
  [
    "its agent gives up without a word",
    after(async ({ started }) => complete(await started(), "FAILED")),
    "FAILED",
    "internal_error",
    "internal_error",
  ],
  [
    "its worker fails",
    after(async ({ started }) =>
      complete(await started(), "ERROR", { code: "agent_process_failed", reason: "sandbox_died" }),
    ),
    "ERROR",
    "agent_process_failed",
    "sandbox_died",
  ],
  [
    "its worker gives it up",
    after(async ({ started }) => complete(await started(), "CANCELLED")),
    "CANCELLED",
    undefined,
    "cancelled",
  ],
  ["it is cancelled in the queue", after(({ cancel }) => cancel()), "CANCELLED", undefined, "cancelled"],
  [
    "it is cancelled at work",
    after(async ({ started, cancel }) => {
      await started();
      await cancel();
    }),
    "CANCELLED",
    undefined,
    "cancelled",
  ],
  [
    "the tree above it is cancelled",
    async () => {
      const { caller, run, started, cancel } = await scene();
      await started();
      const child = await platform.run(caller, { parentRunUid: run.uid });
      await cancel(run.uid, true);
      return { caller, run: child };
    },
    "CANCELLED",
    undefined,
    "cancelled_with_tree",
  ],
  [
    "its workers are lost in the setup, four times",
    after((on) => lose(on, 4, false)),
    "ERROR",
    "resource_unavailable",
    "worker_lost",
  ],
  [
    "its workers are lost at work, three times",
    after((on) => lose(on, 3, true)),
    "ERROR",
    "resource_unavailable",
    "worker_lost",
  ],
  [
    "its worker is lost and it shall not be resumed",
    after((on) => lose(on, 1, true), { config: { on_worker_loss: "fail" } }),
    "ERROR",
    "resource_unavailable",
    "worker_lost",
  ],
  [
    "its setup takes too long",
    after(async ({ taken, long, reap }) => {
      await taken();
      await long("claimed_at");
      await reap();
    }),
    "FAILED",
    "environment_setup_failed",
    "setup_limit",
  ],
  [
    "its execution takes too long",
    after(async ({ started, long, reap }) => {
      await started();
      await long("claimed_at");
      await reap();
    }),
    "ERROR",
    "infrastructure_timeout",
    "execution_limit",
  ],
  [
    "its agent is silent for too long",
    after(async ({ run, started, long, reap }) => {
      await started();
      await long("started_at");
      await platform.database.sql.query("UPDATE run_streams SET last_worker_at = 'epoch' WHERE run_uid = $1", [
        run.uid,
      ]);
      await reap();
    }),
    "ERROR",
    "infrastructure_timeout",
    "stall_limit",
  ],
  [
    "it writes too many events",
    after(async ({ run, started }) => {
      const execution = await started();
      await platform.database.sql.query("UPDATE run_streams SET last_seq = $2 WHERE run_uid = $1", [
        run.uid,
        EVENTS_PER_RUN_MAX,
      ]);
      await execution.append(execution.event("warning", { text: "one more" }));
    }),
    "FAILED",
    "operation_not_supported",
    "event_quota",
  ],
  [
    "it cannot be set up",
    after(async ({ worker }) => platform.life.worker.accept(worker.session, await platform.claim(worker)), {
      title: "no secret",
    }),
    "FAILED",
    "environment_setup_failed",
    "secret_not_found",
  ],
  [
    "the command that its client executes fails",
    async () => {
      const { caller, run, clientUid } = await local();
      const end = { exitCode: 1, isInterrupted: false, output: "", isTruncated: false };
      await platform.life.reportLocalRun(caller, {
        runUid: run.uid,
        clientUid,
        events: [{ seq: 1, at: new Date(), kind: "end", end }],
      });
      return { caller, run };
    },
    "FAILED",
    "agent_process_failed",
    "command_failed",
  ],
  [
    "the client that executes it is lost",
    async () => {
      const { caller, run } = await local();
      await platform.database.sql.query("UPDATE leases SET expires_at = 'epoch' WHERE run_uid = $1", [run.uid]);
      await platform.reaperIsAwake();
      await platform.life.reapOnce();
      return { caller, run };
    },
    "ERROR",
    "agent_process_failed",
    "client_lost",
  ],
];

async function local() {
  const caller = aCaller();
  const clientUid = newUid();
  const { run } = await platform.life.createLocalRun(caller, {
    ...aRun(caller),
    local: { clientUid, command: ["true"] },
  });
  return { caller, run, clientUid };
}

test.each(ENDS)("a run ends with a machine-readable cause when %s", async (_how, act, state, code, reason) => {
  const { caller, run } = await act();
  const { status, ...ended } = await platform.getRun(caller, run.uid);
  const { payload } = (await platform.events(run.uid)).findLast(({ kind }) => kind === "run_finished")!;
  expect([ended.state, status?.errorCode, payload["reason"], payload["error_code"]]).toEqual([
    state,
    code,
    reason,
    code,
  ]);
  expect([payload["state"], payload["retryable"]]).toEqual([state, status?.retryable]);
  expect([Boolean(status?.message), typeof status?.retryable]).toEqual(
    code === undefined ? [status !== undefined, "undefined"] : [true, "boolean"],
  );
});

test.each(["FAILED", "BLOCKED"] as const)(
  "the status message of a run that is %s has at most 8,192 characters",
  async (outcome) => {
    const on = await scene();
    const text = `${"y".repeat(8_100)}${"\u{1F600}".repeat(10_000)}`;
    const error = { code: "agent_reported_failure", reason: "agent_failed", message: text, retryable: false };
    await (await on.started()).complete(outcome, outcome === "FAILED" ? { error } : { message: text });
    const { status } = await platform.getRun(on.caller, on.run.uid);
    expect(status!.message).toMatch(/^y{8100}(?:\u{1F600})+\n… \(cut; the conversation has the whole text\)$/u);
    expect(status!.message.length).toBeLessThanOrEqual(8_192);
  },
);
