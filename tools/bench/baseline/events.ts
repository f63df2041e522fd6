import { randomUUID } from "node:crypto";
import { Pool } from "pg";
import { STEP_TEXT } from "../worker.ts";
import { insertRows, prepareRows, transaction } from "./rows.ts";

/**
 * Reference implementation of appending events: writes the same rows as the platform, by one update of the stream's
 * counters and one insert per batch.
 */
export class EventFloor {
  readonly #pool: Pool;

  private constructor(pool: Pool) {
    this.#pool = pool;
  }

  static async open(databaseUrl: string): Promise<EventFloor> {
    const pool = new Pool({ connectionString: databaseUrl, max: 10 });
    await prepareRows(pool);
    return new EventFloor(pool);
  }

  close(): Promise<void> {
    return this.#pool.end();
  }

  /** Creates a run. Returns a function that appends events to it; `from` is the number of the first event. */
  async run(): Promise<(from: number, count: number) => Promise<void>> {
    const { uid } = await transaction(this.#pool, (tx) => insertRows(tx, { prompt: "Append.", title: "Append" }));
    return (from, count) =>
      transaction(this.#pool, async (tx) => {
        await tx.query({ name: "counters", text: UPDATE, values: [uid, from + count, from + count - 1] });
        const events = Array.from({ length: count }, (_, n) => ({
          seq: from + n + 1,
          uid: randomUUID(),
          payload: { step_id: `s${from + n}`, text: STEP_TEXT },
        }));
        await tx.query({ name: "events", text: INSERT, values: [uid, JSON.stringify(events)] });
      });
  }
}

const UPDATE =
  "UPDATE run_streams SET last_seq = $2, last_client_seq = $3, last_worker_at = clock_timestamp() WHERE run_uid = $1";
const INSERT = `INSERT INTO stream.run_events (run_uid, seq, uid, kind, occurred_at, execution_id, attempt, payload)
  SELECT $1, (e->>'seq')::bigint, (e->>'uid')::uuid, 'model_step', now(), 1, 1, e->'payload' FROM jsonb_array_elements($2::jsonb) AS e`;
