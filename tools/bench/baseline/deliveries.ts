import { randomUUID } from "node:crypto";
import { Pool } from "pg";

/** As many as the platform's deliveries are spread over. */
const WEBHOOKS = Array.from({ length: 2_000 }, () => randomUUID());
const OWNER = randomUUID();

/** A delivery the plain way: the platform's own row, in a table with its indexes, by one named insert that refuses a known identity. */
export class DeliveryFloor {
  readonly #pool: Pool;
  #sent = 0;

  /** `connectionString`: of a database with the tables of the webhook ingress. */
  constructor(connectionString: string, connections: number) {
    this.#pool = new Pool({ connectionString, max: connections });
  }

  /** Answers whether the identity is new. */
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
INSERT INTO deliveries (uid, webhook_uid, team_uid, factory_uid, outcome, identity_kind, delivery_id, size_bytes, received_at, payload)
VALUES ($1, $2, $3, $3, 'accepted', 'sender', $4, $5, $6, $7) ON CONFLICT (webhook_uid, identity_kind, delivery_id) WHERE outcome = 'accepted' DO NOTHING`;
