/* oxlint-disable jest/no-standalone-expect -- needs() declares a test */
/* oxlint-disable import/no-unassigned-import -- set before whatever measures by it is loaded */
import { type ServiceName, SERVICES } from "@millwright/test-platform";
import "./chaos-timeouts.ts";
import { expect, jest, test } from "@jest/globals";
import { Database } from "@millwright/database";
import { eventually, isExpected, needs } from "@millwright/testing";
import { chaosCluster, SLOW_MS, type DeploymentName } from "./deployment.ts";

/**
 * Runs a suite against a platform whose processes are killed repeatedly, then checks that no event is lost and nothing
 * is dead-lettered.
 */
export async function withChaos(deployment: DeploymentName, suite: () => Promise<unknown>): Promise<void> {
  process.env["MILLWRIGHT_SYSTEM"] = deployment;
  jest.setTimeout(SLOW_MS);
  if (deployment === "nats-chaos") {
    needs("nats-server", "there is a nats-server to kill", () => expect(chaosCluster().cluster.nats).toBeDefined());
    if (!isExpected("nats-server")) return;
  }
  await suite();
  test("every killed process is back, and no event is dead-lettered, pending or failed", async () => {
    await chaosCluster().stopKilling();
    expect(chaosCluster().kills.length).toBeGreaterThan(0);
    for (const service of SERVICES) await eventually(() => isHealthy(service));
    expect(chaosCluster().cluster.errors()).toEqual([]);
  });
}

/** Checks that all events are published and that no event, feed reader or work item is dead-lettered. */
async function isHealthy(service: ServiceName): Promise<void> {
  const database = Database.open(chaosCluster().cluster.databaseUrl(service), {
    max: 1,
    applicationName: "system tests",
  });
  const count = async (from: string) =>
    (await database.sql.query<{ count: number }>(`SELECT count(*) FROM stream.${from}`)).rows[0]?.count;
  try {
    const hasWork = (
      await database.sql.query<{ is: boolean }>("SELECT to_regclass('stream.work_items') IS NOT NULL AS is")
    ).rows[0]?.is;
    const found = {
      pending: await count("event_pending"),
      deadLetteredEvents: await count("dead_lettered_events"),
      stoppedConsumers: await count("feed_cursors WHERE stopped_reason IS NOT NULL"),
      deadLetteredWork: hasWork ? await count("work_items WHERE state = 'dead_lettered'") : 0,
    };
    expect({ service, ...found }).toEqual({
      service,
      pending: 0,
      deadLetteredEvents: 0,
      stoppedConsumers: 0,
      deadLetteredWork: 0,
    });
  } finally {
    await database.close();
  }
}
