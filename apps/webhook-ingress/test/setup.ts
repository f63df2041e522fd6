import type { AddressInfo } from "node:net";
import { createServer } from "node:http";
import type { DescService, MessageInitShape } from "@bufbuild/protobuf";
import { VERBS, type Caller, type Verb } from "@millwright/caller";
import { manualClock } from "@millwright/clock";
import { events, factories, identity, webhooks } from "@millwright/contracts";
import { notFound } from "@millwright/errors";
import { newUid, type TeamUid } from "@millwright/ids";
import {
  allowServices,
  call,
  callerOf,
  CallerSigner,
  CallerVerifier,
  clientFor,
  inProcess,
  type Routes,
} from "@millwright/rpc";
import { Metrics } from "@millwright/telemetry";
import { aCaller, memoryLog, testDatabase } from "@millwright/testing";
import {
  allowedServices,
  composeWebhookIngress,
  migrationsDir,
  type WebhookIngress,
  type WebhookIngressOptions,
} from "../src/compose.ts";

const gateway = await CallerSigner.create("gateway");
const own = await CallerSigner.create("webhook-ingress");
const factoriesSigner = await CallerSigner.create("factories");
const metricsSigner = await CallerSigner.create("metrics");
const verifier = new CallerVerifier([gateway.jwk, own.jwk, factoriesSigner.jwk, metricsSigner.jwk]);

export const TEAM = newUid<TeamUid>();
export const OTHER_TEAM = newUid<TeamUid>();
export const NOW = new Date("2026-11-20T10:00:00.000Z");
export const BASE = "https://hooks.test";

const inTeam = (teamUid: TeamUid, verbs: readonly Verb[] = VERBS): Caller => aCaller({ teams: [{ teamUid, verbs }] });
/** Has every verb in the team. */
export const OWNER = inTeam(TEAM);
export const MEMBER = inTeam(TEAM, ["factory.view", "run.view", "run.create"]);
/** Has every verb in another team. */
export const OTHER_TEAM_OWNER = inTeam(OTHER_TEAM);

type Management = "live" | "service_files" | "external_files";
export type Sent = { method?: string; token?: string; headers?: Record<string, string>; body?: string | Uint8Array };
export type Received = { status: number; headers: Headers; body: any };
export type World = Awaited<ReturnType<typeof startWorld>>;

/** Starts the service on its own database; tests use its HTTP and RPC API, and its upstream services are in memory. */
export async function startWorld(options: Partial<WebhookIngressOptions> = {}) {
  const t = await testDatabase(migrationsDir);
  const [clock, log, metrics] = [manualClock(NOW), memoryLog(), new Metrics()];
  const known = new Map<string, { teamUid: string; management: Management }>();
  const secrets = new Map<string, { value: string; revision: string }>();
  const factoryEvents: { type: string; entityUid: string; payload?: Record<string, string | number> }[] = [];

  const upstream: Routes = (router) => {
    router.service(factories.FactoryService, {
      getFactory({ uid }, context) {
        const found = known.get(uid);
        if (!found || !callerOf(context).teams.some(({ teamUid }) => teamUid === found.teamUid))
          throw notFound("factory");
        return { factory: { uid, ...found } };
      },
    });
    router.service(identity.IdentityService, {
      resolveSecrets({ teamUid, optionalNames }) {
        const found = optionalNames.flatMap((name) =>
          secrets.has(`${teamUid} ${name}`) ? [[name, secrets.get(`${teamUid} ${name}`)!] as const] : [],
        );
        return {
          values: Object.fromEntries(found.map(([name, { value }]) => [name, value])),
          revisions: Object.fromEntries(found.map(([name, { revision }]) => [name, revision])),
        };
      },
    });
    router.service(events.EventFeedService, {
      read: ({ after }) => ({
        logUid: "0199a000-0000-7000-8000-000000000001",
        head: BigInt(factoryEvents.length),
        events: factoryEvents.slice(Number(after)).map(({ type, entityUid, payload = {} }, index) => ({
          position: after + BigInt(index + 1),
          uid: newUid(),
          type,
          entity: type.split(".")[1]!,
          entityUid,
          entityVersion: 1n,
          actorType: "user",
          actorUid: "u",
          requestId: "r",
          payload,
          teamUid: TEAM,
          occurredAt: { seconds: 1_795_000_000n, nanos: 0 },
        })),
      }),
    });
  };
  const upstreamAllow = {
    ...allowServices(identity.IdentityService, { resolveSecrets: ["webhook-ingress"] }),
    ...allowServices(events.EventFeedService, { read: ["webhook-ingress"] }),
  };
  const transport = inProcess(upstream, { service: "upstream", verifier, log, metrics, allow: upstreamAllow });
  const closers: (() => Promise<unknown>)[] = [];

  /** Adds a replica on the same database, with its own port. */
  async function replica(overrides: Partial<WebhookIngressOptions> = {}) {
    const ingress = composeWebhookIngress({
      databaseUrl: t.url,
      masterKey: new Uint8Array(32).fill(7),
      publicUrl: "https://mill.test",
      webhookBase: BASE,
      signer: own,
      clock,
      metrics,
      log: Object.assign(log, { child: () => log as never }),
      upstreams: { identity: transport, factories: transport },
      poolSize: 3,
      ...options,
      ...overrides,
    });
    const server = createServer(ingress.requestListener);
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as AddressInfo;
    const close = async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      await ingress.stop();
    };
    closers.push(close);
    return { service: ingress, port, url: `http://127.0.0.1:${port}` };
  }
  const transportTo = (ingress: WebhookIngress) =>
    inProcess((router) => ingress.routes(router), {
      service: "webhook-ingress",
      verifier,
      log,
      metrics,
      allow: allowedServices,
    });
  const first = await replica();
  const client = clientFor(webhooks.WebhookService, transportTo(first.service), { signer: gateway });
  const aFactory = (management: Management = "live", teamUid: string = TEAM): string => {
    const uid = newUid();
    known.set(uid, { teamUid, management });
    return uid;
  };
  const setManagement = (factoryUid: string, management: Management): void =>
    void known.set(factoryUid, { teamUid: TEAM, management });
  /** Creates a webhook, by default with a bearer token. */
  const aWebhook = async (
    input: MessageInitShape<typeof webhooks.WebhookSchema> & { secret?: string } = {},
    caller: Caller = OWNER,
  ) => {
    const { secret = "", ...rest } = input;
    const created = await client.createWebhook(
      { webhook: { name: "hook", enabled: true, factoryUid: aFactory(), ...rest }, secret },
      call(caller),
    );
    return {
      webhook: created.webhook!,
      uid: created.webhook!.uid,
      factoryUid: created.webhook!.factoryUid,
      secret: created.secret || secret,
    };
  };
  return {
    t,
    clock,
    log,
    secrets,
    replica,
    service: first.service,
    url: first.url,
    port: first.port,
    client,
    transportTo,
    aFactory,
    setManagement,
    aWebhook,
    factoryEvents,
    clientOf: <S extends DescService>(service: S) =>
      clientFor(service, transportTo(first.service), { signer: factoriesSigner }),
    asMetrics: clientFor(webhooks.CodeHostWebhookService, transportTo(first.service), { signer: metricsSigner }),
    asFactories: clientFor(webhooks.WebhookService, transportTo(first.service), { signer: factoriesSigner }),

    /** Sends a delivery as an outside system does; `token` is the path segment after the uid. */
    async send(
      uid: string,
      { method = "POST", token, headers = {}, body = "{}" }: Sent = {},
      to = first.url,
    ): Promise<Received> {
      const response = await fetch(`${to}/webhooks/w/${uid}${token === undefined ? "" : `/${token}`}`, {
        method,
        headers,
        ...(method === "GET" || method === "HEAD" ? {} : { body: body as string }),
      });
      const text = await response.text();
      return { status: response.status, headers: response.headers, body: text === "" ? undefined : JSON.parse(text) };
    },

    /** Returns the log of a webhook, newest first, as [outcome, delivery id, size]. */
    async logOf(uid: string): Promise<[string, string, number][]> {
      const { deliveries } = await client.listDeliveries({ webhookUid: uid, pageSize: 100 }, call(OWNER));
      return deliveries.map(({ outcome, deliveryId, sizeBytes }) => [outcome, deliveryId, Number(sizeBytes)]);
    },

    async rows<R = Record<string, unknown>>(text: string, params: unknown[] = []): Promise<R[]> {
      return (await t.database.sql.query<R>(text, params)).rows;
    },

    async stop(): Promise<void> {
      for (const close of closers) await close();
      await t.close();
    },
  };
}

/** Returns the headers of a bearer token. */
export const bearer = (secret: string, more: Record<string, string> = {}) => ({
  authorization: `Bearer ${secret}`,
  ...more,
});
