import { Database } from "@millwright/database";
import type { Cluster } from "../cluster.ts";
import { FIRING } from "./targets.ts";

/** A delivery that was answered 202 and must be found in the databases afterwards. */
export type AcceptedDelivery = { readonly webhookUid: string; readonly id: string; readonly body: string };

/** Reads the outcome of deliveries from the databases of the services. */
export class Ledger {
  readonly #ingress: Database;
  readonly #factories: Database;
  readonly #orchestrator: Database;

  constructor(cluster: Cluster) {
    const open = (service: "webhook-ingress" | "factories" | "orchestrator") =>
      Database.open(cluster.databaseUrl(service), { max: 2, applicationName: "delivery-chaos" });
    [this.#ingress, this.#factories, this.#orchestrator] = [
      open("webhook-ingress"),
      open("factories"),
      open("orchestrator"),
    ];
  }

  /** Counts the stored deliveries of one delivery id by outcome. */
  async entries(webhookUid: string, id: string): Promise<{ accepted: number; duplicates: number; others: number }> {
    const { rows } = await this.#ingress.sql.query<{ accepted: number; duplicates: number; others: number }>(
      `SELECT count(*) FILTER (WHERE outcome = 'accepted') AS accepted, count(*) FILTER (WHERE outcome = 'duplicate') AS duplicates, count(*) FILTER (WHERE outcome NOT IN ('accepted', 'duplicate')) AS others
         FROM deliveries WHERE webhook_uid = $1 AND dedupe_key = $2`,
      [webhookUid, id],
    );
    return rows[0]!;
  }

  /** Returns the number of accepted deliveries whose decisions are missing or pending. */
  async unsettled(): Promise<number> {
    const [{ rows: accepted }, { rows: decided }] = await Promise.all([
      this.#ingress.sql.query<{ count: number }>("SELECT count(*) FROM deliveries WHERE outcome = 'accepted'"),
      this.#factories.sql.query<{ count: number }>(
        "SELECT count(*) FROM trigger_events e WHERE NOT EXISTS (SELECT FROM decisions d WHERE d.factory_uid = e.factory_uid AND d.event_uid = e.uid AND d.outcome = 'pending')",
      ),
    ]);
    return accepted[0]!.count - decided[0]!.count;
  }

  /**
   * Returns violated invariants: accepted deliveries that were lost, duplicated or changed, and runs without a
   * delivery.
   */
  async violations(promised: readonly AcceptedDelivery[]): Promise<string[]> {
    const violations: string[] = [];
    const { rows: accepted } = await this.#ingress.sql.query<{
      uid: string;
      webhook: string;
      id: string;
      body: string;
    }>(
      "SELECT uid, webhook_uid AS webhook, dedupe_key AS id, convert_from(payload, 'UTF8') AS body FROM deliveries WHERE outcome = 'accepted'",
    );
    const byIdentity = Map.groupBy(accepted, ({ webhook, id }) => `${webhook} ${id}`);
    for (const { webhookUid, id, body } of promised) {
      const found = byIdentity.get(`${webhookUid} ${id}`) ?? [];
      if (found.length !== 1) violations.push(`${id} was accepted, and is in the log ${found.length} times`);
      else if (found[0]!.body !== body) violations.push(`${id} is in the log with another body`);
    }
    const { rows: published } = await this.#ingress.sql.query<{ uid: string; times: number }>(
      "SELECT entity_uid AS uid, count(*) AS times FROM stream.event_log WHERE type = 'millwright.delivery.accepted.v1' GROUP BY entity_uid",
    );
    const times = new Map(published.map(({ uid, times: count }) => [uid, count]));
    for (const { uid } of accepted)
      if (times.get(uid) !== 1) violations.push(`delivery ${uid} was published ${times.get(uid) ?? 0} times`);
    if (published.length !== accepted.length)
      violations.push(`${published.length} deliveries were published, ${accepted.length} are in the log`);

    const { rows: decided } = await this.#factories.sql.query<{ uid: string; outcomes: string[]; runs: string[] }>(
      `SELECT e.delivery_uid AS uid, array_agg(d.outcome ORDER BY d.outcome) AS outcomes, array_remove(array_agg(d.run_uid::text), NULL) AS runs
         FROM trigger_events e JOIN decisions d ON d.factory_uid = e.factory_uid AND d.event_uid = e.uid GROUP BY e.delivery_uid, e.uid`,
    );
    const decisions = Map.groupBy(decided, ({ uid }) => uid);
    for (const { uid, body } of accepted) {
      const found = decisions.get(uid) ?? [];
      const wanted =
        body === JSON.stringify({ ...(JSON.parse(body) as object), ...FIRING })
          ? "fired,not_matched"
          : "not_matched,not_matched";
      if (found.length !== 1 || found[0]!.outcomes.join() !== wanted)
        violations.push(`delivery ${uid} was decided ${found.length} times: ${JSON.stringify(found)}, not ${wanted}`);
    }
    const fired = decided.flatMap(({ runs }) => runs);
    const { rows: runs } = await this.#orchestrator.sql.query<{ uid: string }>("SELECT uid FROM runs");
    const made = new Set(runs.map(({ uid }) => uid));
    if (new Set(fired).size !== fired.length) violations.push("two decisions name the same run");
    for (const uid of fired) if (!made.has(uid)) violations.push(`run ${uid} was decided and does not exist`);
    if (made.size !== fired.length) violations.push(`${made.size} runs exist, ${fired.length} were decided`);
    return violations;
  }

  async close(): Promise<void> {
    await Promise.all([this.#ingress.close(), this.#factories.close(), this.#orchestrator.close()]);
  }
}
