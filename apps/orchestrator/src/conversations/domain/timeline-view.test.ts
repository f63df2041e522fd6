import { describe, expect, test } from "@jest/globals";
import { isUuid, newUid, type RunUid } from "@millwright/ids";
import type { RunEvent } from "../../runs/domain/run-events.ts";
import type { JsonObject } from "../../runs/domain/run.ts";
import { timelineOf } from "./timeline-view.ts";

let seq = 0;
const anEvent = (kind: RunEvent["kind"], payload: JsonObject = {}, over: Partial<RunEvent> = {}): RunEvent => ({
  runUid: "r" as RunUid,
  seq: ++seq,
  uid: newUid(),
  kind,
  occurredAt: new Date(0),
  isSuperseded: false,
  payload,
  ...over,
});

describe("published names", () => {
  test.each<[RunEvent, string[], object | undefined]>([
    [anEvent("run_created"), ["oz_run_created"], undefined],
    [anEvent("run_claimed", { worker_host: "w" }), ["oz_run_claimed"], { worker_host: "w" }],
    [anEvent("sandbox_ready", { kind: "bwrap" }), ["worker_container_ready"], undefined],
    [anEvent("agent_started", { session_id: "s" }), ["shared_session_started", "agent_started"], { session_id: "s" }],
    [anEvent("run_finished", { state: "SUCCEEDED" }), ["oz_run_done"], undefined],
    [anEvent("run_finished", { state: "BLOCKED", message: "?" }), ["oz_run_blocked"], undefined],
    [anEvent("run_finished", { state: "CANCELLED", cancelled_by: "u" }), ["oz_run_cancelled"], { cancelled_by: "u" }],
    [
      anEvent("run_finished", { state: "FAILED", message: "m", error_code: "c", retryable: false, reason: "x" }),
      ["oz_run_failed"],
      { message: "m", error_code: "c", retryable: false },
    ],
    [anEvent("run_finished", { state: "ERROR", message: "m" }), ["oz_run_errored"], { message: "m" }],
    [anEvent("sandbox_stopped", { reason: "done" }), ["vm_shutdown"], { reason: "done" }],
    [anEvent("worker_lost", {}), [], undefined],
    [anEvent("model_step", {}), [], undefined],
  ])("%#: %j", (event, types, payload) => {
    const entries = timelineOf([event]);
    expect(entries.map(({ type }) => type)).toEqual(types);
    expect(entries[0]?.payload).toEqual(payload);
  });
});

test("each entry has a unique and stable uid", () => {
  const event = anEvent("agent_started", { session_id: "s" });
  const [first, second] = [timelineOf([event]), timelineOf([event])];
  expect(first).toEqual(second);
  expect(new Set(first.map(({ uid }) => uid)).size).toBe(2);
  expect(first.every(({ uid }) => isUuid(uid))).toBe(true);
});

test("omits events of a superseded attempt, but not the platform's events about it", () =>
  expect(
    timelineOf([
      anEvent("run_claimed"),
      anEvent("agent_started", {}, { isSuperseded: true }),
      anEvent("run_claimed"),
    ]).map(({ type }) => type),
  ).toEqual(["oz_run_claimed", "oz_run_claimed"]));
