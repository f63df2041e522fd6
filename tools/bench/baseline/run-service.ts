// Serves the back half of the two-process reference implementation: the platform's own RunService over HTTP/2, with the
// statements of server.ts, without authentication, validation and other features. Reads BASELINE_DATABASE_URL and PORT.
import { createServer } from "node:http2";
import { create } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import { orchestrator } from "@millwright/contracts";
import { Pool } from "pg";
import { insertRows, prepareRows, readRow, transaction, type RunRow } from "./rows.ts";

const { BASELINE_DATABASE_URL: connectionString = "", PORT = "" } = process.env;
/** As on the platform's servers. */
const STREAMS_MAX = 1_000;

const pool = new Pool({ connectionString, max: 10 });
await prepareRows(pool);

const handler = connectNodeAdapter({
  routes: (router) =>
    router.service(orchestrator.RunService, {
      async createRuns({ runs: [request] }) {
        const { prompt = "", title = "" } = request!;
        const row = await transaction(pool, (tx) => insertRows(tx, { prompt, title }));
        return { runs: [{ run: runMessage(row), created: true }] };
      },
      async getRun({ runUid }) {
        const row = await readRow(pool, runUid);
        if (!row) throw new ConnectError("run not found", Code.NotFound);
        return { run: runMessage(row) };
      },
    }),
});
createServer({ settings: { maxConcurrentStreams: STREAMS_MAX } }, handler).listen(Number(PORT), "127.0.0.1");

/** Returns the message with the fields that the platform sends for a run that has not started. */
const runMessage = (row: RunRow): orchestrator.Run =>
  create(orchestrator.RunSchema, {
    uid: row.uid,
    rootRunUid: row.root_run_uid,
    title: row.title,
    state: row.state,
    prompt: row.submitted_prompt,
    submittedPrompt: row.submitted_prompt,
    createdAt: timestampFromDate(row.created_at),
    updatedAt: timestampFromDate(row.updated_at),
    source: row.source,
    executionLocation: row.execution_location,
    creatorUid: row.creator_uid,
    executorUid: row.executor_uid,
    ownerType: row.owner_type,
    ownerUid: row.owner_uid,
    agentConfig: row.agent_config,
    metadata: row.metadata,
    conversationUid: row.conversation_uid,
    isRunTypeCancellable: true,
    mode: row.mode,
  });

process.once("SIGTERM", () => process.exit(0));
