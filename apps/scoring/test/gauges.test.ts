import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { newUid } from "@millwright/ids";
import { Metrics } from "@millwright/telemetry";
import { enqueueWork } from "@millwright/work";
import { startWorld, type World } from "./setup.ts";

let world: World;
beforeAll(async () => void (world = await startWorld()));
afterAll(() => world.stop());

test("reports work that is not done", async () => {
  const metrics = new Metrics();
  world.replica({ metrics });
  await enqueueWork(world.t.database.sql, { kind: "judge", key: newUid(), payload: null });
  expect(await metrics.text()).toContain('millwright_work_items{service="scoring",kind="judge",state="waiting"} 1');
});
