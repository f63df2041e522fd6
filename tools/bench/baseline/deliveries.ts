import { randomUUID } from "node:crypto";
import { Pool } from "pg";

/** The same number of webhooks as the platform's deliveries are spread over. */
const WEBHOOKS = Array.from({ length: 2_000 }, () => randomUUID());
const OWNER = randomUUID();

/**
 * Reference implementation of a delivery: inserts the same row as the platform, into a table with the same indexes, by
 * one prepared statement that ignores a known identity.
 */
export class DeliveryFloor {
  readonly #pool: Pool;
  #sent = 0;

  /** `connectionString` identifies a database with the tables of the webhook ingress. */
  constructor(connectionString: string, connections: number) {
    this.#pool = new Pool({ connectionString, max: connections });
  }

  /** Inserts a delivery. Returns whether its identity is new. */
  async insert(body: Buffer, id: string = randomUUID()): Promise<boolean> {
    const webhook = WEBHOOKS[this.#sent++ % WEBHOOKS.length]!;
    const { rowCount } = await this.#pool.query({
      name: "deliver",
      text: INSERT,
      values: [randomUUID(), webhook, OWNER, id, body.length, new Date(), body],
    });
    return rowCount === 1;
  }

  close(): Promise<void> {
    return this.#pool.end();
  }
}

const INSERT = `
INSERT INTO deliveries (uid, webhook_uid, team_uid, factory_uid, outcome, dedupe_kind, dedupe_key, size_bytes, received_at, payload)
VALUES ($1, $2, $3, $3, 'accepted', 'sender', $4, $5, $6, $7) ON CONFLICT (webhook_uid, dedupe_kind, dedupe_key) WHERE outcome = 'accepted' DO NOTHING`;
