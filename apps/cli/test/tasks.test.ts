import { expect, test } from "@jest/globals";
import { fakeApi } from "./fake-api.ts";

const { answers, seen, millwright } = fakeApi();

test("task review lists the tasks in review of the whole team", async () => {
  const task = { uid: "task-1", title: "Fix the discount", stage: "REVIEW", updated_at: "2026-11-27T10:00:00Z" };
  const request = "GET /api/v1/team/t1/tasks?stage=REVIEW";
  answers[request] = { status: 200, body: { tasks: [task], page_info: { has_next_page: false } } };
  const { code, out } = await millwright("task", "review");
  const lines = out.trimEnd().split("\n");
  expect([code, ...lines.map((line) => line.split(/\s{2,}/))]).toEqual([
    0,
    ["TASK", "CHANGED", "TITLE"],
    ["task-1", "2026-11-27T10:00:00Z", "Fix the discount"],
  ]);
  expect(seen.map(({ method, path }) => `${method} ${path}`)).toEqual([request]);
});
