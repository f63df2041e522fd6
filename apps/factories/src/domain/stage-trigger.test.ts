import { describe, expect, test } from "@jest/globals";
import type { TriggerPart } from "@millwright/definition";
import { chainMetadata, chainOf, loopOf, type AutomationUid } from "./automation.ts";
import { checkStageMove } from "./stage-trigger.ts";

const trigger = (filter: TriggerPart["filter"] = {}): TriggerPart => ({
  provider: "factory",
  event: "work_item_stage_changed",
  filter,
});
const move = { stage: "REVIEW", from: "IMPLEMENT", ticketSource: "linear" };

test.each<[string, TriggerPart["filter"], boolean]>([
  ["nothing", {}, true],
  ["empty sets", { stages: { in: [] }, from_stages: { not_in: [] } }, true],
  ["the new stage", { stages: { in: ["SPEC", "review"] } }, true],
  ["another stage", { stages: { in: ["SPEC"] } }, false],
  ["the old stage", { from_stages: { in: ["IMPLEMENT"] } }, true],
  ["not the new stage", { stages: { not_in: ["REVIEW"] } }, false],
  ["both, of which one does not hold", { stages: { in: ["REVIEW"] }, from_stages: { in: ["TRIAGE"] } }, false],
  ["the source of the ticket", { ticket_sources: { in: ["linear"] } }, true],
  ["another source", { ticket_sources: { not_in: ["linear"] } }, false],
])("a trigger that filters by %s", (_filter, filter, passed) =>
  expect(checkStageMove(move)(trigger(filter))).toMatchObject({ passed }),
);

test.each<[TriggerPart["filter"], string]>([
  [
    { stages: { in: ["SPEC", "COMPLETE"], not_in: ["REVIEW"] } },
    "The task moved from IMPLEMENT to REVIEW. The filter requires stages SPEC or COMPLETE and not REVIEW.",
  ],
  [
    { ticket_sources: { in: ["jira"] } },
    "The task moved from IMPLEMENT to REVIEW, ticket source linear. The filter requires ticket_sources jira.",
  ],
])("a trigger that does not match states what its filter requires: %j", (filter, detail) =>
  expect(checkStageMove(move)(trigger(filter))).toMatchObject({ passed: false, detail }),
);

test("a task without a ticket matches no ticket source and no exclusion", () => {
  expect(
    checkStageMove({ ...move, ticketSource: null })(trigger({ ticket_sources: { in: ["linear"] } })),
  ).toMatchObject({ passed: false, failed: ["ticket_sources"] });
  expect(
    checkStageMove({ ...move, ticketSource: null })(trigger({ ticket_sources: { not_in: ["linear"] } })),
  ).toMatchObject({ passed: true });
  expect(checkStageMove(move)({ ...trigger(), provider: "webhook" })).toBeUndefined();
});

describe("a loop", () => {
  const uids = Array.from({ length: 6 }, (_, n) => `0198c2d0-0000-7000-8000-00000000000${n}` as AutomationUid);
  test("is detected at any distance in the chain, and a chain that is too long is refused", () => {
    expect(loopOf({ uid: uids[0]! }, [])).toBeUndefined();
    expect(loopOf({ uid: uids[0]! }, [uids[1]!, uids[2]!])).toBeUndefined();
    expect(loopOf({ uid: uids[1]! }, [uids[1]!, uids[2]!])).toContain("this automation");
    expect(loopOf({ uid: uids[5]! }, uids.slice(0, 4))).toBeUndefined();
    expect(loopOf({ uid: uids[5]! }, uids.slice(0, 5))).toContain("is 5 long");
  });
  test("is detected from the metadata of runs, within their size limit", () => {
    for (let length = 1; length <= 5; length += 1) {
      const chain = uids.slice(0, length);
      const metadata = { automation_uid: chain.at(-1)!, ...chainMetadata(chain) };
      expect(chainOf(metadata)).toEqual(chain);
      expect(Math.max(...Object.values(metadata).map((value) => Buffer.byteLength(value)))).toBeLessThanOrEqual(256);
    }
    expect(chainOf({})).toEqual([]);
  });
});
