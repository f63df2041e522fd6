// Serves the reference implementation and the compared job queues, one Koa handler each, in one process: a hand-written
// service for the same task. Reads BASELINE_DATABASE_URL and PORT.
import { Router } from "@koa/router";
import { makeWorkerUtils } from "graphile-worker";
import Koa from "koa";
import { Pool } from "pg";
import { PgBoss } from "pg-boss";
import { bodyOf } from "./body.ts";
import { insertRows, prepareRows, readRow, transaction, type NewRow, type RunRow } from "./rows.ts";

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
creates("/floor", async (row) => (await transaction(pool, (tx) => insertRows(tx, row))).uid);
creates("/pg-boss", (row) => boss.send(QUEUE, row));
creates("/graphile-worker", async (row) => (await graphile.addJob(TASK, row)).id);
creates("/floor-with-pg-boss", (row) =>
  transaction(pool, async (tx) => {
    const { uid } = await insertRows(tx, row);
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
    const { uid } = await insertRows(tx, row);
    await tx.query({
      name: "job",
      text: "SELECT graphile_worker.add_job($1, $2::json)",
      values: [TASK, JSON.stringify({ uid })],
    });
    return uid;
  }),
);
router.get("/floor/:uid", async (ctx) => {
  const found = await readRow(pool, ctx["params"].uid ?? "");
  if (!found) return;
  const { frozen: _, ...row } = found as RunRow & { frozen: unknown };
  ctx.body = row;
});
router.get("/ready", (ctx) => void (ctx.body = "ready"));

new Koa().use(router.routes() as unknown as Koa.Middleware).listen(Number(PORT), "127.0.0.1");

process.once("SIGTERM", () => process.exit(0));
