import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { newUid } from "@millwright/ids";
import { domainError } from "@millwright/testing";
import { WORKER_VERSION_MIN, type WorkerRegistration } from "../../src/runs/domain/worker-session.ts";
import { startExecution } from "../support/fake-worker.ts";
import { aCaller, teamOf, testPlatform, type TestPlatform } from "../support/platform.ts";

let platform: TestPlatform;
beforeAll(async () => {
  platform = await testPlatform();
});
afterAll(() => platform.close());

async function team() {
  const caller = aCaller();
  return { caller, worker: await platform.worker({ teamUid: teamOf(caller) }) };
}

const registration = (over: Partial<WorkerRegistration> = {}): WorkerRegistration => ({
  workerHost: "twin",
  instanceUid: newUid(),
  version: WORKER_VERSION_MIN,
  backend: "test",
  slots: 1,
  labels: {},
  harnesses: [{ type: "oz", version: "1" }],
  models: [],
  images: [],
  sandbox: "none",
  sandboxFeatures: [],
  skills: [],
  ...over,
});

test("Two workers with one worker_id: both work, and neither can use the other's leases", async () => {
  const { caller, worker } = await team();
  const { life } = platform;
  const [firstProcess, secondProcess] = await Promise.all(
    [1, 2].map(async () => ({
      session: await life.worker.authenticate(await life.worker.register(worker.key, registration())),
    })),
  );
  for (let n = 0; n < 2; n++) await platform.run(caller);
  const [first, second] = [
    await startExecution(platform, { token: "", ...firstProcess! }),
    await startExecution(platform, { token: "", ...secondProcess! }),
  ];
  expect(first.assignment.job.run.runUid).not.toBe(second.assignment.job.run.runUid);
  expect(
    await life.worker.append(secondProcess!.session, [{ ...first.ref, events: [first.event("warning")] }]),
  ).toMatchObject([{ error: "LEASE_LOST" }]);
  for (const execution of [first, second])
    expect((await execution.heartbeat()).leases).toMatchObject([{ status: "OK" }]);
});

test("Old worker version: refused at Register with the required version", async () => {
  const { worker } = await team();
  await expect(platform.life.worker.register(worker.key, registration({ version: "0.0.9" }))).rejects.toMatchObject({
    reason: "worker_too_old",
    metadata: { min_version: WORKER_VERSION_MIN },
  });
});

test("refuses a worker with an unknown key or session", async () => {
  await expect(platform.life.worker.register("mww_unknown", registration())).rejects.toEqual(
    domainError({ reason: "key_invalid" }),
  );
  await expect(platform.life.worker.authenticate("nothing")).rejects.toEqual(
    domainError({ reason: "session_invalid" }),
  );
});

test("a process that registers again retains its leases, and its old token is revoked", async () => {
  const { caller, worker } = await team();
  await platform.run(caller);
  const same = registration();
  const token = await platform.life.worker.register(worker.key, same);
  const session = await platform.life.worker.authenticate(token);
  const execution = await startExecution(platform, { token, session });
  const again = await platform.life.worker.register(worker.key, same);
  await expect(platform.life.worker.authenticate(token)).rejects.toEqual(domainError({ reason: "session_invalid" }));
  expect((await platform.life.worker.authenticate(again)).uid).toBe(session.uid);
  expect((await execution.heartbeat()).leases).toMatchObject([{ status: "OK" }]);
});
