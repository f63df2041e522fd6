// Serves the front half of the two-process reference implementation: Koa handlers that call RunService of
// run-service.ts over HTTP/2 in binary protobuf, with the messages of the platform, without authentication, validation
// and retries. Reads RUN_SERVICE_URL and PORT.
import { create } from "@bufbuild/protobuf";
import { timestampDate } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { Router } from "@koa/router";
import { orchestrator } from "@millwright/contracts";
import Koa from "koa";
import { bodyOf } from "./body.ts";
import { OWNER, type NewRow } from "./rows.ts";

const { RUN_SERVICE_URL: baseUrl = "", PORT = "" } = process.env;

const runs = createClient(
  orchestrator.RunService,
  createConnectTransport({ baseUrl, httpVersion: "2", useBinaryFormat: true }),
);

const router = new Router();
router.post("/floor", async (ctx) => {
  const { prompt, title } = JSON.parse(await bodyOf(ctx.req)) as NewRow;
  const request = create(orchestrator.RunRequestSchema, {
    prompt,
    title,
    config: {},
    ownerType: "team",
    ownerUid: OWNER,
    source: "API",
  });
  const { runs: created } = await runs.createRuns({ runs: [request] });
  ctx.body = { run_id: created[0]!.run!.uid, state: "QUEUED" };
});
router.get("/floor/:uid", async (ctx) => {
  const { run } = await runs.getRun({ runUid: ctx["params"].uid });
  ctx.body = runRecord(run!);
});
router.get("/ready", async (ctx) => {
  await runs.getRun({ runUid: OWNER }).catch((error: unknown) => {
    if (ConnectError.from(error).code !== Code.NotFound) throw error;
  });
  ctx.body = "ready";
});

new Koa().use(router.routes() as unknown as Koa.Middleware).listen(Number(PORT), "127.0.0.1");

/** Returns the members of the public record of a run, without profiles and links. */
const runRecord = (run: orchestrator.Run): object => ({
  run_id: run.uid,
  task_id: run.uid,
  root_run_id: run.rootRunUid,
  title: run.title,
  state: run.state,
  prompt: run.prompt,
  submitted_prompt: run.submittedPrompt,
  created_at: timestampDate(run.createdAt!).toISOString(),
  updated_at: timestampDate(run.updatedAt!).toISOString(),
  started_at: null,
  finished_at: null,
  run_time: `PT${Number(run.runTimeMs) / 1000}S`,
  source: run.source,
  execution_location: run.executionLocation,
  scope: { type: run.ownerType, uid: run.ownerUid },
  creator: run.creatorUid,
  executor: run.executorUid,
  agent_config: run.agentConfig,
  metadata: run.metadata,
  conversation_id: run.conversationUid,
  is_sandbox_running: run.isSandboxRunning,
  is_run_type_cancellable: run.isRunTypeCancellable,
  debug_agent_available: run.debugAgentAvailable,
  artifacts: run.artifacts,
});

process.once("SIGTERM", () => process.exit(0));
