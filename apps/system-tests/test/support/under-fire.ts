import { expect, jest, test } from "@jest/globals";
import { Database } from "@millwright/database";
import { eventually } from "@millwright/testing";
import { burning, SLOW_MS, type DeploymentName } from "./deployment.ts";

/** Declares the tests of a suite against a platform whose parts die meanwhile, and that nothing of it is lost or stuck afterwards. */
export async function underFire(deployment: DeploymentName, suite: () => Promise<unknown>): Promise<void> {
  process.env["MILLWRIGHT_SYSTEM"] = deployment;
  process.env["MILLWRIGHT_PATIENCE"] = "3";
  jest.setTimeout(SLOW_MS);
  await suite();
  test("whatever was killed is back, and nothing is parked, stuck or failed inside", async () => {
    await burning().extinguish();
    expect(burning().kills.length).toBeGreaterThan(0);
    for (const service of ["gateway", "orchestrator", "factories"] as const) await eventually(() => isWhole(service));
    expect(burning().cluster.errors()).toEqual([]);
  });
}

/** Every event is in the log, every reader has come to its end, and nothing was parked. */
async function isWhole(service: "gateway" | "orchestrator" | "factories"): Promise<void> {
  const database = Database.open(burning().cluster.databaseUrl(service), { max: 1, applicationName: "system tests" });
  try {
    const { rows } = await database.sql.query(
      `SELECT (SELECT count(*) FROM stream.event_pending) AS pending, (SELECT count(*) FROM stream.parked_events) AS parked,
              (SELECT count(*) FROM stream.feed_cursors WHERE parked_reason IS NOT NULL) AS stopped,
              (SELECT count(*) FROM stream.work_items WHERE state = 'parked') AS given_up`,
    );
    expect([service, rows[0]]).toEqual([service, { pending: 0, parked: 0, stopped: 0, given_up: 0 }]);
  } finally {
    await database.close();
  }
}
