import { createServer, type Server } from "node:http";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ConnectRouter } from "@connectrpc/connect";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { directoryBlobs } from "@millwright/blobs";
import { serviceCaller } from "@millwright/caller";
import { systemClock } from "@millwright/clock";
import { events, identity, orchestrator, worker } from "@millwright/contracts";
import { DomainError } from "@millwright/errors";
import { newUid } from "@millwright/ids";
import {
  call,
  CallerSigner,
  CallerVerifier,
  clientFor,
  http1Transport,
  inProcess,
  type ServerOptions,
} from "@millwright/rpc";
import { Metrics } from "@millwright/telemetry";
import { aCaller, domainError, memoryLog, testDatabase, type TestDatabase } from "@millwright/testing";
import { createLocalJWKSet, jwtVerify } from "jose";
import { composeOrchestrator, migrationsDir, type Orchestrator } from "../src/compose.ts";
import { teamOf } from "./support/platform.ts";

/** The identity service in memory: one platform worker key, agents without settings. */
const fakeIdentity = (router: ConnectRouter) =>
  void router.service(identity.IdentityService, {
    authenticateKey: ({ key }) => {
      if (key === "mw_user") return { keyUid: newUid(), principalType: "user" };
      if (key !== "mww_key")
        throw new DomainError({ kind: "unauthenticated", reason: "key_invalid", message: "No such key." });
      return { keyUid: "key", principalType: "worker" };
    },
    resolveAgent: () => ({ layers: [] }),
  });

let db: TestDatabase;
let own: Orchestrator;
let server: Server;
let dir: string;
let runs: ReturnType<typeof clientFor<typeof orchestrator.RunService>>;
let leases: ReturnType<typeof clientFor<typeof orchestrator.LeaseService>>;
let conversations: ReturnType<typeof clientFor<typeof orchestrator.ConversationService>>;
let workers: ReturnType<typeof clientFor<typeof worker.WorkerService>>;
let signer: CallerSigner;
const caller = aCaller();
const as = (token: string) => ({ headers: { authorization: `Bearer ${token}` }, timeoutMs: 20_000 });

beforeAll(async () => {
  db = await testDatabase(migrationsDir);
  dir = await mkdtemp(join(tmpdir(), "millwright-listeners-"));
  signer = await CallerSigner.create("gateway");
  const self = await CallerSigner.create("orchestrator");
  const verifier = new CallerVerifier([signer.jwk, self.jwk]);
  const options = (service: string, allow: ServerOptions["allow"]): ServerOptions => ({
    service,
    verifier,
    log: memoryLog(),
    metrics: new Metrics(),
    allow,
  });
  const log = { ...memoryLog(), child: () => memoryLog() } as never;
  own = await composeOrchestrator({
    databaseUrl: db.url,
    masterKey: new Uint8Array(32).fill(1),
    publicUrl: "http://public.test",
    signer: self,
    verifier,
    clock: systemClock,
    log,
    metrics: new Metrics(),
    upstreams: {
      identity: inProcess(
        fakeIdentity,
        options("gateway", { "millwright.identity.v1.IdentityService/AuthenticateKey": ["orchestrator"] }),
      ),
      factories: inProcess(
        (router) => void router.service(events.EventFeedService, { read: () => ({ logUid: newUid() }) }),
        options("factories", { "millwright.events.v1.EventFeedService/Read": ["orchestrator"] }),
      ),
    },
    blobs: directoryBlobs({ dir, publicUrl: "http://public.test", signingKey: new Uint8Array(32), clock: systemClock }),
  });
  await own.start();
  server = createServer(own.workerListener).listen(0, "127.0.0.1");
  await once(server, "listening");
  const transport = inProcess(own.routes, options("orchestrator", own.allow));
  runs = clientFor(orchestrator.RunService, transport, { signer });
  leases = clientFor(orchestrator.LeaseService, transport, { signer });
  conversations = clientFor(orchestrator.ConversationService, transport, { signer });
  workers = clientFor(
    worker.WorkerService,
    http1Transport(`http://127.0.0.1:${(server.address() as AddressInfo).port}/rpc`),
  );
});
afterAll(async () => {
  await own.stop(); // also ends the streams of workers
  server.close();
  server.closeAllConnections();
  await db.close();
  await rm(dir, { recursive: true });
});

const register = () =>
  workers.register(
    {
      workerId: "local",
      instanceUid: newUid(),
      version: "0.1.0",
      backend: "direct",
      slots: 2,
      harnesses: [{ type: "oz", version: "1" }],
      sandbox: "bwrap",
    },
    as("mww_key"),
  );

test("a worker drives a run from the first poll to its end through its server", async () => {
  const { sessionToken, heartbeatMs, leaseTtlMs, publicUrl } = await register();
  expect({ heartbeatMs, leaseTtlMs, publicUrl }).toEqual({
    heartbeatMs: 10_000,
    leaseTtlMs: 45_000,
    publicUrl: "http://public.test",
  });
  const session = as(sessionToken);
  const stream = workers.subscribe({}, { ...session, timeoutMs: 0 })[Symbol.asyncIterator]();
  expect((await stream.next()).value).toMatchObject({ directives: [], workAvailable: false });

  const idleSession = as((await register()).sessionToken);
  const withoutPoll = workers.subscribe({}, { ...idleSession, timeoutMs: 0 })[Symbol.asyncIterator]();
  await withoutPoll.next();

  const poll = workers.lease({ freeSlots: 2, waitMs: 15_000 }, session);
  const request = { prompt: "Say hello.", ownerType: "team", ownerUid: teamOf(caller), metadata: { k: "v" } };
  const created = await runs.createRuns({ runs: [request] }, call(caller));
  const runUid = created.runs[0]!.run!.uid;
  expect(created.runs[0]).toMatchObject({
    created: true,
    atCapacity: false,
    run: { state: "QUEUED", title: "Say hello.", source: "API", metadata: { k: "v" }, ownerType: "team" },
  });
  expect((await withoutPoll.next()).value).toMatchObject({ workAvailable: true });
  await withoutPoll.return?.();
  const { offers } = await poll;
  const { assignments, lost } = await workers.accept(
    { leases: offers.map(({ executionId, attempt }) => ({ executionId, attempt })) },
    session,
  );
  expect(lost).toEqual([]);
  expect(assignments[0]).toMatchObject({
    runUid,
    attempt: 1,
    executionSeq: 1,
    modelId: "scripted",
    harness: "oz",
    stepLimit: 200,
    restarted: false,
    mode: "normal",
  });
  expect(assignments[0]!.inputs).toMatchObject([{ text: "Say hello.", kind: "prompt", mode: "normal" }]);

  const { executionId, attempt } = assignments[0]!;
  const lease = { executionId, attempt };
  const appended = await workers.appendEvents(
    { batches: [{ ...lease, events: [{ clientSeq: 1n, kind: "agent_started", payload: { session_id: "s" } }] }] },
    session,
  );
  expect(appended.results).toMatchObject([{ executionId, error: "", ackedClientSeq: 1n }]);
  const followup = await conversations.createFollowup({ runUid, message: "And goodbye." }, call(caller));
  expect(followup.outcome).toBe("live_session");
  const response = (await stream.next()).value as worker.SubscribeResponse;
  expect(response.directives).toMatchObject([
    {
      seq: 1n,
      executionId,
      directive: { case: "followup", value: { message: { uid: followup.followupUid, text: "And goodbye." } } },
    },
  ]);

  const heartbeat = await workers.heartbeat(
    { state: "READY", freeSlots: 1, leases: [{ ...lease, phase: "RUNNING", ackedDirectiveSeq: 1n }] },
    session,
  );
  expect(heartbeat.directives).toEqual([]);
  const token = heartbeat.leases[0]!.runToken;
  const { payload } = await jwtVerify(token.slice("mwr_".length), createLocalJWKSet({ keys: [...own.runTokenJwks] }));
  expect(payload).toMatchObject({
    run: runUid,
    root: runUid,
    execution: Number(executionId),
    attempt: 1,
    team: teamOf(caller),
  });
  expect(payload.exp).toBeLessThanOrEqual(Number(heartbeat.leases[0]!.expiresAt!.seconds) + 1);
  const gateway = serviceCaller("gateway", newUid());
  expect(await leases.checkLease(lease, call(gateway))).toMatchObject({
    runUid,
    teamUid: teamOf(caller),
    creatorUid: caller.principal.uid,
  });

  const delivered = { clientSeq: 2n, kind: "message", payload: { role: "user", message_uid: followup.followupUid! } };
  await workers.appendEvents({ batches: [{ ...lease, events: [delivered] }] }, session);
  const history = await workers.readHistory({ ...lease, afterSeq: 0n }, session);
  expect(history.events.map(({ kind }) => kind)).toEqual([
    "run_created",
    "run_claimed",
    "agent_started",
    "followup_accepted",
    "message",
  ]);
  const { results } = await workers.complete(
    { completions: [{ ...lease, outcome: "DONE", lastClientSeq: 2n }] },
    session,
  );
  expect(results).toMatchObject([{ error: "" }]);
  expect((await runs.getRun({ runUid }, call(caller))).run).toMatchObject({ state: "SUCCEEDED", sessionUid: "s" });
  await expect(leases.checkLease(lease, call(gateway))).rejects.toEqual(
    domainError({ kind: "unauthenticated", reason: "lease_lost" }),
  );
});

test("the server refuses invalid keys, sessions and messages with their reasons", async () => {
  await expect(
    workers.register({ workerId: "w", instanceUid: "i", version: "0.1.0" }, as("mww_other")),
  ).rejects.toEqual(domainError({ reason: "key_invalid" }));
  await expect(workers.register({ workerId: "w", instanceUid: "i", version: "0.1.0" }, as("mw_user"))).rejects.toEqual(
    domainError({ reason: "key_invalid" }),
  );
  await expect(workers.register({ workerId: "w", instanceUid: "i", version: "0.0.1" }, as("mww_key"))).rejects.toEqual(
    domainError({ reason: "worker_too_old" }),
  );
  await expect(workers.register({ workerId: "", instanceUid: "i", version: "0.1.0" }, as("mww_key"))).rejects.toEqual(
    domainError({ reason: "worker_invalid" }),
  );
  await expect(workers.lease({ freeSlots: 1 }, as("nothing"))).rejects.toEqual(
    domainError({ reason: "session_invalid" }),
  );
  await expect(workers.heartbeat({}, {})).rejects.toEqual(domainError({ reason: "session_invalid" }));
  const session = as((await register()).sessionToken);
  const events200 = Array.from({ length: 201 }, (_, n) => ({ clientSeq: BigInt(n + 1), kind: "warning" }));
  await expect(workers.appendEvents({ batches: [{ events: events200 }] }, session)).rejects.toEqual(
    domainError({ reason: "batch_too_large" }),
  );
  await expect(workers.appendEvents({ batches: [{ events: [{ kind: "run_finished" }] }] }, session)).rejects.toEqual(
    domainError({ reason: "event_kind_unknown" }),
  );
  await expect(workers.complete({ completions: [{ outcome: "FINE" }] }, session)).rejects.toEqual(
    domainError({ reason: "outcome_unknown" }),
  );
  expect(
    (await workers.complete({ completions: [{ executionId: 999_999n, attempt: 1, outcome: "DONE" }] }, session))
      .results,
  ).toMatchObject([{ error: "LEASE_LOST" }]);
  expect((await workers.accept({ leases: [{ executionId: 999_999n, attempt: 1 }] }, session)).lost).toHaveLength(1);
});

test("a malformed request is refused before anything is written", async () => {
  const owner = { ownerType: "team", ownerUid: teamOf(caller) };
  const refused = async (request: object, reason: string) =>
    expect(runs.createRuns({ runs: [request] }, call(caller))).rejects.toEqual(
      domainError({ kind: "invalid_argument", reason }),
    );
  await refused({ ...owner, prompt: "" }, "prompt_required");
  await refused({ ...owner, prompt: "x", mode: "fast" }, "mode_unknown");
  await refused({ prompt: "x" }, "owner_invalid");
  await refused({ ...owner, prompt: "x", parentRunUid: newUid() }, "parent_run_invalid");
  await expect(runs.createRuns({}, call(caller))).rejects.toEqual(domainError({ reason: "runs_count" }));
  await expect(leases.checkLease({}, call(caller))).rejects.toEqual(domainError({ kind: "unauthenticated" }));
  expect((await runs.countLiveRuns({ factoryUid: newUid() }, call(caller))).live).toBe(0);
  expect(
    (
      await leases.getQueueStatus(
        { runUid: (await runs.createRuns({ runs: [{ ...owner, prompt: "x" }] }, call(caller))).runs[0]!.run!.uid },
        call(caller),
      )
    ).state,
  ).toBe("QUEUED");
});
