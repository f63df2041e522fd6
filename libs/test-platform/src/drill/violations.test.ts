import { describe, expect, test } from "@jest/globals";
import { violationsOf, effectViolationsOf, isGivenUp } from "./violations.ts";
import type { EventFact, RunFacts } from "./facts.ts";
import { faultsIn } from "./faults-in-logs.ts";
import { partsOf, scheduleOf } from "./schedule.ts";

const own = (kind: string, payload: object = {}, executionId: number | null = 1) => ({
  kind,
  payload,
  executionId,
  attempt: null,
});
const by = (attempt: number, kind: string, payload: object = {}, executionId = 1) => ({
  kind,
  payload,
  executionId,
  attempt,
});
const step = (attempt: number, id: string, text: string, calls: object[] = []) =>
  by(attempt, "model_step", { step_id: id, text, tool_calls: calls });

/** Returns a run that was claimed, has the given events and has ended. */
function aRun(
  done: readonly (ReturnType<typeof own> | ReturnType<typeof by>)[],
  more: Partial<RunFacts> = {},
): RunFacts {
  const state = more.state ?? "SUCCEEDED";
  const all = [own("run_created", {}, null), own("run_claimed"), ...done, own("run_finished", { state })];
  const events = all.map((event, n): EventFact => ({ seq: n + 1, uid: `e${n}`, isSuperseded: false, ...event }));
  const accepted = Math.max(1, ...events.map(({ attempt }) => attempt ?? 0));
  return {
    uid: "run",
    parentUid: null,
    prompt: "````scripted\n- say: a.first\n````",
    state,
    errorCode: null,
    message: null,
    isFinished: true,
    lastSeq: events.length,
    lastClientSeq: events.filter(({ attempt }) => attempt === accepted).length,
    events,
    messages: [],
    executions: [{ id: 1, state: "ENDED", accepted }],
    artifacts: [],
    pullRequests: 0,
    ...more,
  };
}
const violations = (run: RunFacts) => violationsOf(run).map((violation) => violation.replace("run run: ", ""));
const followUp = { uid: "f", kind: "followup", text: "more", isDelivered: true, isUndeliverable: false, reason: null };

describe("the drill reports", () => {
  test("no violation for a run that lost a worker and continued", () => {
    const lost = [own("worker_lost", { attempt: 1 }), own("run_queued"), own("run_claimed")];
    expect(
      violations(
        aRun([
          step(1, "s0", "one"),
          step(1, "s1", "", [{}]),
          ...lost,
          by(2, "tool_end", { call_id: "s1", state: "interrupted" }),
          step(2, "s1", "", [{}]),
          by(2, "tool_end", { call_id: "s1", state: "completed" }),
        ]),
      ),
    ).toEqual([]);
  });
  test.each<[string, RunFacts, RegExp]>([
    ["a run that does not end", aRun([], { state: "INPROGRESS" }), /is left INPROGRESS/],
    ["a failed run without a cause", aRun([], { state: "ERROR" }), /without a machine-readable cause/],
    ["a cancelled run without a caller", aRun([], { state: "CANCELLED" }), /cancelled without a caller/],
    ["a blocked run without a message", aRun([], { state: "BLOCKED" }), /blocked without a message/],
    ["a missing event", aRun([], { lastSeq: 4 }), /has 3 events, the last is 4/],
    [
      "an event that was sent and not stored",
      aRun([by(1, "warning")], { lastClientSeq: 2 }),
      /1 events of its newest attempt, which sent 2/,
    ],
    ["a second claim without a release", aRun([own("run_claimed")]), /claimed by event 3 while it was claimed/],
    [
      "a write of a lost attempt",
      aRun([by(1, "warning"), own("worker_lost", { attempt: 1 }), by(1, "warning"), own("run_claimed")]),
      /attempt 1, which was lost before/,
    ],
    ["a write of an older attempt", aRun([by(2, "warning"), by(1, "warning")]), /comes after 1\/2/],
    [
      "costs after the end",
      aRun([own("run_finished", { state: "SUCCEEDED" }), own("usage_recorded")]),
      /comes after the end/,
    ],
    ["a step that was taken twice", aRun([step(1, "s0", "one"), step(1, "s0", "one")]), /takes step s0 twice/],
    [
      "a tool call that ended twice",
      aRun([by(1, "tool_end", { call_id: "c" }), by(1, "tool_end", { call_id: "c" })]),
      /ends tool c twice/,
    ],
    [
      "a follow-up without an outcome",
      aRun([], { messages: [{ ...followUp, isDelivered: false }] }),
      /more does not have exactly one outcome/,
    ],
    [
      "a follow-up that was delivered twice",
      aRun([by(1, "message", { message_uid: "f" }), by(1, "message", { message_uid: "f" })], { messages: [followUp] }),
      /exactly one outcome.*2:0/,
    ],
    [
      "follow-ups in another order",
      aRun([by(1, "message", { message_uid: "g" }), by(1, "message", { message_uid: "f" })], {
        messages: [followUp, { ...followUp, uid: "g" }],
      }),
      /another order/,
    ],
  ])("%s", (_what, run, violation) => {
    expect(violations(run)).toContainEqual(expect.stringMatching(violation));
  });

  const plan = {
    name: "a",
    texts: ["a.first", "a.last"],
    files: ["a.txt"],
    children: [{ name: "b", texts: ["b.first"], files: [], children: [] }],
  };
  const whole = aRun([step(1, "s0", "a.first"), step(1, "s1", "a.last")], {
    artifacts: [{ type: "FILE", name: "a.txt" }],
  });
  const child = {
    ...aRun([step(1, "s0", "b.first")]),
    uid: "child",
    parentUid: "run",
    prompt: "```scripted\n- say: b.first\n```",
  };
  test("nothing of deeds that are all there", () => {
    expect(effectViolationsOf(whole, plan, [whole, child])).toEqual([]);
  });
  test.each<[string, RunFacts, readonly RunFacts[], RegExp]>([
    ["a second child of one call", whole, [child, { ...child, uid: "twin" }], /child b: 2, not 1/],
    ["a missing child", whole, [], /child b: 0, not 1/],
    [
      "a second artifact",
      { ...whole, artifacts: [...whole.artifacts, ...whole.artifacts] },
      [child],
      /artifact a.txt: 2, not 1/,
    ],
    ["an unplanned pull request", { ...whole, pullRequests: 1 }, [child], /pull request: 1, not 0/],
    ["a missing text", aRun([step(1, "s1", "a.last")], { artifacts: whole.artifacts }), [child], /emitted a.last/],
  ])("%s of a run", (_what, run, others, violation) => {
    expect(effectViolationsOf(run, plan, others)).toContainEqual(expect.stringMatching(violation));
  });

  test("a run as given up only if it has lost its workers or reached a limit", () => {
    const lost = aRun(
      [own("worker_lost"), own("worker_lost"), own("worker_lost"), own("run_finished", { reason: "worker_lost" })],
      { state: "ERROR", errorCode: "resource_unavailable" },
    );
    const last = (run: RunFacts) => ({ ...run, events: run.events.slice(0, -1) });
    expect([
      isGivenUp(last(lost)),
      isGivenUp({ ...last(lost), events: last(lost).events.filter(({ seq }) => seq !== 3) }),
      isGivenUp(whole),
    ]).toEqual([true, false, false]);
  });
  test("a logged failure, unless a database connection was terminated", () => {
    const lines = [
      '{"requestId":"1","error":{"code":"57P01"}}',
      '{"requestId":"1","reason":"internal"}',
      '{"requestId":"2","reason":"internal"}',
    ];
    expect(faultsIn(lines)).toEqual([lines[2]]);
  });
});

test("a seed always returns the same schedule, and seeds cover all kinds of faults and work", () => {
  expect(scheduleOf(7)).toEqual(scheduleOf(7));
  const schedules = Array.from({ length: 300 }, (_one, seed) => scheduleOf(seed));
  expect(new Set(schedules.flatMap(({ faults }) => faults.map(({ kind }) => kind)))).toEqual(
    new Set(["kill", "freeze", "stop", "cut", "backends", "wipe"]),
  );
  expect(
    new Set(schedules.flatMap(({ runs }) => runs.flatMap(({ actions }) => actions.map(({ kind }) => kind)))),
  ).toEqual(new Set(["followup", "cancel", "interrupt"]));
  expect(schedules.flatMap(({ faults }) => faults.map(({ target }) => target))).toEqual(
    expect.arrayContaining(["orchestrator-all", "gateway-all", "worker-3", "nats-server"]),
  );
  expect(partsOf("gateway-all")).toEqual(["gateway-0", "gateway-1"]);
  expect(schedules.some(({ runs }) => runs.some(({ pullRequests }) => pullRequests > 0))).toBe(true);
});
