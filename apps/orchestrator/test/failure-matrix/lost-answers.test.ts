import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { ActiveExecution, acceptExecution, startExecution } from "../support/fake-worker.ts";
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

test("Accept lost answer: a repeated Accept returns the same inputs and the same attempt", async () => {
  const { caller, worker } = await team();
  await platform.run(caller);
  const offers = await platform.claim(worker);
  const first = await platform.life.worker.accept(worker.session, offers);
  const again = await platform.life.worker.accept(worker.session, offers);
  expect(again.assignments[0]!.inputs).toEqual(first.assignments[0]!.inputs);
  await new ActiveExecution(platform, worker.session, first.assignments[0]!).start();
  expect((await platform.life.worker.accept(worker.session, offers)).assignments[0]!.inputs).toEqual(
    first.assignments[0]!.inputs,
  );
});

test("Event append lost answer: a repeated batch adds nothing; a batch with a gap is refused, and the response names the missing event", async () => {
  const { caller, worker } = await team();
  const run = await platform.run(caller);
  const execution = await acceptExecution(platform, worker);
  const batch = [execution.event("agent_started", { session_id: "s" }), execution.event("warning", { text: "a" })];
  for (let n = 0; n < 2; n++) expect(await execution.append(...batch)).toMatchObject({ ackedClientSeq: 2, error: "" });
  expect(await execution.append(...batch, execution.event("warning", { text: "b" }))).toMatchObject({
    ackedClientSeq: 3,
    error: "",
  });
  const [lost, next] = [execution.event("warning", { text: "c" }), execution.event("warning", { text: "d" })];
  expect(await execution.append(next)).toMatchObject({ error: "SEQUENCE_GAP", ackedClientSeq: 3 });
  expect(await execution.append(lost, next)).toMatchObject({ error: "", ackedClientSeq: 5 });
  const texts = (await platform.events(run.uid))
    .filter(({ kind }) => kind === "warning")
    .map(({ payload }) => payload["text"]);
  expect(texts).toEqual(["a", "b", "c", "d"]);
});

test("Complete lost answer: the same outcome succeeds again, another one is refused because the execution has ended; it requires every event", async () => {
  const { caller, worker } = await team();
  const run = await platform.run(caller);
  const execution = await startExecution(platform, worker);
  const late = execution.event("warning", { text: "late" });
  expect(await execution.complete("BLOCKED")).toMatchObject({ error: "EVENTS_PENDING", ackedClientSeq: 3 });
  await execution.append(late);
  for (let n = 0; n < 2; n++)
    expect(await execution.complete("BLOCKED", { message: "Which name?" })).toMatchObject({ error: "" });
  expect(await execution.complete("DONE")).toMatchObject({ error: "ALREADY_TERMINAL" });
  expect(await platform.getRun(caller, run.uid)).toMatchObject({
    state: "BLOCKED",
    status: { message: "Which name?" },
  });
  expect((await platform.kinds(run.uid)).filter((kind) => kind === "run_finished")).toHaveLength(1);
});
