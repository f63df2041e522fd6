// Serves the reference implementation and the compared job queues, one Koa handler each, in one process: a hand-written
// service for the same task. Reads BASELINE_DATABASE_URL and PORT.
import { Router } from "@koa/router";
import { makeWorkerUtils } from "graphile-worker";
import Koa from "koa";
import { Pool } from "pg";
import { PgBoss } from "pg-boss";
import { insertRows, prepareRows, transaction, type NewRow } from "./rows.ts";

const { BASELINE_DATABASE_URL: connectionString = "", PORT = "" } = process.env;
const QUEUE = "runs";
const TASK = "run";

const pool = new Pool({ connectionString, max: 10 });
await prepareRows(pool);
const boss = new PgBoss({ connectionString, max: 10, supervise: false, schedule: false });
await boss.start();
await boss.createQueue(QUEUE);
const graphile = await makeWorkerUtils({ connectionString, maxPoolSize: 10 });
await graphile.migrate();

const router = new Router();
const creates = (path: string, create: (row: NewRow) => Promise<unknown>): unknown =>
  router.post(path, async (ctx) => {
    const row = JSON.parse(await bodyOf(ctx.req)) as NewRow;
    ctx.body = { run_id: await create(row), state: "QUEUED" };
  });
creates("/floor", (row) => transaction(pool, (tx) => insertRows(tx, row)));
creates("/pg-boss", (row) => boss.send(QUEUE, row));
creates("/graphile-worker", async (row) => (await graphile.addJob(TASK, row)).id);
creates("/floor-with-pg-boss", (row) =>
  transaction(pool, async (tx) => {
    const uid = await insertRows(tx, row);
    await boss.send(
      QUEUE,
      { uid },
      { db: { executeSql: (text: string, values: unknown[]) => tx.query(text, values) } },
    );
    return uid;
  }),
);
creates("/floor-with-graphile-worker", (row) =>
  transaction(pool, async (tx) => {
    const uid = await insertRows(tx, row);
    await tx.query({
      name: "job",
      text: "SELECT graphile_worker.add_job($1, $2::json)",
      values: [TASK, JSON.stringify({ uid })],
    });
    return uid;
  }),
);
router.get("/floor/:uid", async (ctx) => {
  const { rows } = await pool.query({
    name: "read",
    text: "SELECT * FROM runs WHERE uid = $1",
    values: [ctx["params"].uid],
  });
  if (!rows[0]) return;
  const { frozen: _, ...row } = rows[0];
  ctx.body = row;
});
router.get("/ready", (ctx) => void (ctx.body = "ready"));

new Koa().use(router.routes() as unknown as Koa.Middleware).listen(Number(PORT), "127.0.0.1");

async function bodyOf(request: AsyncIterable<Buffer>): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

process.once("SIGTERM", () => process.exit(0));
