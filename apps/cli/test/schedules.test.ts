import { expect, test } from "@jest/globals";
import { fakeApi } from "./fake-api.ts";

const { seen, answers, millwright } = fakeApi();

const SCHEDULE = {
  id: "s1",
  name: "Nightly",
  cron_schedule: "0 3 * * *",
  time_zone: "Europe/Berlin",
  enabled: true,
  prompt: "Look.",
  mode: "normal",
  metadata: { a: "b" },
  overlap_policy: "skip",
  catch_up_seconds: 60,
  history: { last_ran: null, next_run: "2026-11-21T02:00:00.000Z" },
  last_spawn_error: null,
};
const LINE = "schedule s1 (Nightly): 0 3 * * * Europe/Berlin, next 2026-11-21T02:00:00.000Z";

test("a schedule is created with what is given", async () => {
  answers["POST /api/v1/agent/schedules"] = { status: 201, body: SCHEDULE };
  expect(
    await millwright(
      "schedule",
      "create",
      "Nightly",
      "0 3 * * *",
      "--prompt",
      "Look.",
      "--zone",
      "Europe/Berlin",
      "--overlap",
      "skip",
    ),
  ).toMatchObject({ code: 0, out: LINE });
  expect(seen[0]!.body).toEqual({
    name: "Nightly",
    cron_schedule: "0 3 * * *",
    prompt: "Look.",
    time_zone: "Europe/Berlin",
    overlap_policy: "skip",
  });
  expect(await millwright("schedule", "create", "Nightly", "0 3 * * *")).toMatchObject({
    code: 2,
    err: expect.stringContaining("--prompt"),
  });
});

test("schedules are listed and shown", async () => {
  answers["GET /api/v1/agent/schedules"] = {
    status: 200,
    body: { schedules: [SCHEDULE, { ...SCHEDULE, id: "s2", enabled: false, time_zone: null }] },
  };
  const { out } = await millwright("schedule", "list");
  expect(out).toContain("2026-11-21T02:00:00.000Z");
  expect(out.split("\n").at(-1)).toMatch(/s2.*UTC.*paused/);
  answers["GET /api/v1/agent/schedules/s1"] = {
    status: 200,
    body: { ...SCHEDULE, last_spawn_error: "No such model." },
  };
  expect((await millwright("schedule", "get", "s1")).out).toBe(`${LINE}\nNo such model.\nLook.`);
});

test("an update changes only the given settings", async () => {
  answers["GET /api/v1/agent/schedules/s1"] = { status: 200, body: SCHEDULE };
  answers["PUT /api/v1/agent/schedules/s1"] = { status: 200, body: SCHEDULE };
  expect(await millwright("schedule", "update", "s1", "--cron", "0 4 * * *")).toMatchObject({ code: 0, out: LINE });
  expect(seen[1]!.body).toEqual({
    name: "Nightly",
    cron_schedule: "0 4 * * *",
    time_zone: "Europe/Berlin",
    enabled: true,
    prompt: "Look.",
    mode: "normal",
    metadata: { a: "b" },
    overlap_policy: "skip",
    catch_up_seconds: 60,
  });
});

test("a schedule is paused, resumed and deleted", async () => {
  answers["POST /api/v1/agent/schedules/s1/pause"] = { status: 200, body: { ...SCHEDULE, enabled: false } };
  answers["POST /api/v1/agent/schedules/s1/resume"] = { status: 200, body: SCHEDULE };
  answers["DELETE /api/v1/agent/schedules/s1"] = { status: 200, body: { success: true } };
  expect((await millwright("schedule", "pause", "s1")).out).toContain("next paused");
  expect((await millwright("schedule", "resume", "s1")).out).toBe(LINE);
  expect((await millwright("schedule", "delete", "s1")).out).toBe("schedule s1 is deleted.");
});

test("slots are shown with their runs, or with the reason why there is none", async () => {
  answers["GET /api/v1/agent/schedules/s1/slots?state=fired&limit=2"] = {
    status: 200,
    body: {
      slots: [
        { slot_at: "T2", state: "fired", run_id: "r1" },
        { slot_at: "T1", state: "skipped", reason: "spawn_failed", message: "No." },
      ],
    },
  };
  const { out } = await millwright("schedule", "slots", "s1", "--state", "fired", "--limit", "2");
  expect(out).toMatch(/T2 +fired +r1/);
  expect(out).toMatch(/T1 +skipped +spawn_failed: No\./);
});
