import { mkdtempSync } from "node:fs";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  create,
  fromJson,
  ScalarType,
  toJson,
  type DescMessage,
  type DescMethod,
  type JsonObject,
  type JsonValue,
  type MessageShape,
} from "@bufbuild/protobuf";
import { createConnectRouter, type Transport } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { serviceCaller, type Caller } from "@millwright/caller";
import { factories as factoriesContract, orchestrator as runs } from "@millwright/contracts";
import { DomainError } from "@millwright/errors";
import { newUid } from "@millwright/ids";
import {
  call,
  CallerSigner,
  CallerVerifier,
  clientFor,
  inProcess,
  upstreamTransport,
  serveHttp2,
} from "@millwright/rpc";
import { Metrics, startTracing } from "@millwright/telemetry";
import { aCaller, memoryLog, postgresUrl } from "@millwright/testing";
import { loadConfig } from "../src/config.ts";
import { composeServices, type Services } from "../src/services.ts";

type ServerName = keyof Services["servers"];
/** Two transports to the same server. */
type Ways = { readonly local: Transport; readonly remote: Transport; readonly methods: readonly DescMethod[] };

const SERVERS: readonly ServerName[] = [
  "gateway",
  "orchestrator",
  "factories",
  "scheduler",
  "scoring",
  "metrics",
  "webhook-ingress",
  "workers",
];
const signer = await CallerSigner.create("gateway");
/** Signers of the services that call in their own name. */
const signers: Readonly<Record<string, CallerSigner>> = {
  gateway: signer,
  orchestrator: await CallerSigner.create("orchestrator"),
  factories: await CallerSigner.create("factories"),
};
const member = aCaller();
const [team] = member.teams;

let dir: string;
let services: Services;
const ways = {} as Record<ServerName, Ways>;
const closers: (() => unknown)[] = [];

/** Composes the services without starting them, so that no background work runs between two compared calls. */
beforeAll(async () => {
  dir = mkdtempSync(join(tmpdir(), "millwright-contract-"));
  const url = (service: string) => Object.assign(new URL(postgresUrl()), { pathname: `/millwright_${service}` }).href;
  const config = loadConfig({ MILLWRIGHT_DATA_DIR: dir });
  services = await composeServices({
    config,
    databases: { url, stop: async () => {} },
    masterKeys: { masterKey: new Uint8Array(32).fill(7) },
    publicUrl: "http://mill.test",
    log: memoryLog(),
    metrics: new Metrics(),
    tracing: await startTracing(config.tracing, { log: memoryLog() }),
  });
  const verifier = new CallerVerifier(Object.values(signers).map(({ jwk }) => jwk));
  for (const name of SERVERS) {
    const { routes, options } = services.servers[name];
    const trusting = { ...options, verifier };
    const server = await serveHttp2(routes, trusting, { port: 0 });
    const remote = upstreamTransport([`http://127.0.0.1:${server.port}`]);
    closers.push(
      () => server.close(0),
      () => remote.close(),
    );
    const router = createConnectRouter();
    routes(router);
    ways[name] = { local: inProcess(routes, trusting), remote, methods: router.handlers.map(({ method }) => method) };
  }
});
afterAll(async () => {
  for (const close of closers.toReversed()) await close();
  await services?.stop();
  await rm(dir, { recursive: true, force: true });
});

type AnyClient = Readonly<Record<string, (request: unknown, options: object) => unknown>>;

/** Milliseconds after which a stream that does not end is cancelled. */
const STREAM_MS = 5_000;

/** Returns the outcome of a call: the response, the messages of the stream, or all public members of the error. */
async function outcome(
  transport: Transport,
  method: DescMethod,
  request: unknown,
  caller: Caller | undefined,
): Promise<unknown> {
  const by = caller?.principal.type === "service" ? signers[caller.principal.uid] : signer;
  const client = clientFor(method.parent, transport, by ? { signer: by } : {}) as unknown as AnyClient;
  const options = caller ? call(caller, method.methodKind === "unary" ? {} : { timeoutMs: STREAM_MS }) : {};
  try {
    const answer = client[method.localName]!(request, options);
    const messages: unknown[] = [];
    if (method.methodKind === "unary") messages.push(await answer);
    else for await (const message of answer as AsyncIterable<unknown>) messages.push(message);
    return messages.map((message) => toJson(method.output, message as MessageShape<DescMessage>));
  } catch (error) {
    if (!(error instanceof DomainError)) throw error;
    const { kind, reason, code, message, retryable, metadata, retryAfterSeconds, details } = error;
    return { kind, reason, code, message, retryable, metadata, retryAfterSeconds, details };
  }
}

/** Replaces values that differ between two equal calls: new uids, times, and what is signed with them. */
function comparable(value: unknown): unknown {
  const uids = new Map<string, string>();
  const text = JSON.stringify(value ?? null)
    .replaceAll(
      /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g,
      (uid) => uids.get(uid) ?? (uids.set(uid, `uid ${uids.size}`), `uid ${uids.size - 1}`),
    )
    .replaceAll(/"version":\d+(?=[^{}]*"effectiveFrom")/g, '"version":"next"') // each call adds a price
    .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, "time")
    .replaceAll(/(sessionToken":")[^"]+/g, "$1token")
    .replaceAll(/(environmentUid|"uid)":"[A-Za-z0-9]{22}"/g, '$1":"environment"');
  return JSON.parse(text);
}

/** Calls a method through both transports and returns the outcome. Fails if the outcomes differ. */
async function compare(
  server: ServerName,
  method: DescMethod,
  request: unknown,
  caller: Caller | undefined,
): Promise<unknown> {
  const { local, remote } = ways[server];
  const here = comparable(await outcome(local, method, request, caller));
  expect({ method: method.name, outcome: comparable(await outcome(remote, method, request, caller)) }).toEqual({
    method: method.name,
    outcome: here,
  });
  return here;
}

/** Returns a request with a value in every text and number field. */
function filled(message: DescMessage): unknown {
  const json: JsonObject = {};
  for (const field of message.fields) {
    const one =
      field.fieldKind === "scalar" || (field.fieldKind === "list" && field.listKind === "scalar")
        ? sample(field.name, field.scalar)
        : undefined;
    if (one !== undefined && field.oneof?.name.startsWith("_") !== false)
      json[field.jsonName] = field.fieldKind === "list" ? [one] : one;
  }
  return fromJson(message, json);
}
function sample(name: string, type: ScalarType): JsonValue | undefined {
  if (type === ScalarType.STRING) return /uid/.test(name) ? newUid() : "some text";
  if (type === ScalarType.BOOL) return true;
  return type === ScalarType.BYTES ? undefined : 1;
}

const CALLERS: readonly [string, () => Caller | undefined][] = [
  ["a member of a team", () => member],
  ["a platform administrator without teams", () => ({ ...aCaller(), teams: [], platformAdmin: true })],
  ["a service in its own name", () => serviceCaller("orchestrator", newUid())],
  ["another service in its own name", () => serviceCaller("factories", newUid())],
  ["an anonymous caller", () => undefined],
];

describe.each(SERVERS)("every RPC of %s returns the same over HTTP/2 as in-process", (server) => {
  test.each(CALLERS)("called by %s, with empty and with filled fields", async (_who, caller) => {
    const asked = caller();
    const outcomes: unknown[] = [];
    for (const method of ways[server].methods) {
      outcomes.push(
        await compare(server, method, create(method.input), asked),
        await compare(server, method, filled(method.input), asked),
      );
    }
    expect(outcomes).toHaveLength(2 * ways[server].methods.length);
  });
});

test("a resource created over one transport is identical over both", async () => {
  const { FactoryService } = factoriesContract;
  const { RunService } = runs;
  const factoriesClient = clientFor(FactoryService, ways.factories.local, { signer });
  const runsClient = clientFor(RunService, ways.orchestrator.local, { signer });
  const as = call(member);
  const { factory } = await factoriesClient.createFactory({ teamUid: team!.teamUid, factory: { name: "Works" } }, as);
  const factoryUid = factory!.uid;
  const files = [
    { path: "factory.yaml", content: "schemaVersion: v1alpha1\nname: Works\nrepositories: []\n" },
    { path: "agents/a/agent.md", content: "no front matter" },
  ];
  await factoriesClient.putSource({ factoryUid, source: { kind: "files", files } }, as);
  const { runs: made } = await runsClient.createRuns(
    {
      runs: ["First", "Second"].map((title) => ({
        title,
        prompt: "Do it.",
        ownerType: "user",
        ownerUid: member.principal.uid,
      })),
    },
    as,
  );
  const [first, second] = made.map(({ run }) => run!.uid);
  await runsClient.cancelRun({ runUid: first! }, as);

  const seen: unknown[] = [];
  const see = async (server: ServerName, method: DescMethod, request: unknown) =>
    void seen.push(await compare(server, method, request, member));
  await see("factories", FactoryService.method.getFactory, { uid: factoryUid });
  await see("factories", FactoryService.method.listFactories, {});
  await see("factories", FactoryService.method.getSource, { factoryUid });
  await see("factories", FactoryService.method.checkSource, { factoryUid, files });
  const { getRun, listRuns } = RunService.method;
  const { getQueueStatus } = runs.LeaseService.method;
  const { getTimeline, getConversation } = runs.ConversationService.method;
  const { listRunEvents, watchRunEvents } = runs.RunEventService.method;
  for (const runUid of [first, second])
    for (const method of [getRun, getQueueStatus, getTimeline, getConversation, listRunEvents])
      await see("orchestrator", method, { runUid });
  await see("orchestrator", listRuns, { pageSize: 10 });
  await see("orchestrator", watchRunEvents, { runUid: first });
  expect(seen.filter((one) => !Array.isArray(one))).toEqual([]);
});
