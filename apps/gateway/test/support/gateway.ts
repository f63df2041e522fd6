import { SignJWT, exportJWK, generateKeyPair } from "jose";
import type { Routes } from "@millwright/rpc";
import { CallerSigner, CallerVerifier, allowServices, clientFor, inProcess } from "@millwright/rpc";
import { manualClock } from "@millwright/clock";
import {
  definitions,
  events,
  factories,
  identity,
  metrics as metricsApi,
  orchestrator,
  webhooks,
} from "@millwright/contracts";
import { DomainError, notFound } from "@millwright/errors";
import { appendEvents, EventLog, serveEventFeed, type NewEvent } from "@millwright/events";
import { newUid } from "@millwright/ids";
import { Metrics } from "@millwright/telemetry";
import { memoryLog, testDatabase } from "@millwright/testing";
import { composeGateway, migrationsDir, type Gateway } from "../../src/compose.ts";
import type { GatewayOptions } from "../../src/options.ts";
import { serveApi, type Api } from "./api.ts";

export const NOW = "2026-11-20T10:00:00.000Z";
export const APP_KEY = "first-owner-key";

type Lease = { runUid: string; rootRunUid: string; teamUid: string; agentUid: string; creatorUid: string };

/** Starts a whole gateway on a real database, with in-memory upstream services. */
export async function openGateway({
  consoleDir,
  provider,
  hasOwnerKey = true,
}: {
  consoleDir?: string;
  provider?: GatewayOptions["provider"];
  /** False: the gateway creates the first owner's key. */
  hasOwnerKey?: boolean;
} = {}) {
  const own = await testDatabase(migrationsDir);
  // the event log of the upstream service; any migrated database has the tables
  const foreign = await testDatabase(migrationsDir);
  const clock = manualClock(NOW);
  const log = memoryLog();
  const metrics = new Metrics();
  const signers = {
    gateway: await CallerSigner.create("gateway"),
    factories: await CallerSigner.create("factories"),
    orchestrator: await CallerSigner.create("orchestrator"),
  };
  const verifier = new CallerVerifier(Object.values(signers).map((signer) => signer.jwk));
  const { publicKey, privateKey } = await generateKeyPair("EdDSA");
  const leases = new Map<string, Lease>();
  const pushed: { teamUid: string; name: string; revision: string; value: string | undefined }[] = [];
  let onPush = async (): Promise<void> => {};
  const knownFactories = new Map<string, string>();
  const foreignLog = new EventLog({ database: foreign.database, clock, log });
  foreignLog.start();

  const upstream: Routes = (router) => {
    router.service(orchestrator.LeaseService, {
      checkLease({ executionId, attempt }) {
        const lease = leases.get(`${executionId}.${attempt}`);
        if (!lease)
          throw new DomainError({
            kind: "unauthenticated",
            reason: "lease_lost",
            message: "The attempt has lost its lease.",
          });
        return lease;
      },
    });
    router.service(orchestrator.CatalogService, {
      findSkills: ({ texts }) => ({
        specByText: Object.fromEntries(
          texts
            .filter((text) => text.startsWith("o/r:"))
            .map((text) => [text, text.replace(":x", ":skills/x/SKILL.md")]),
        ),
      }),
      listEnvironments: ({ teamUid }) => ({
        environments: [
          { uid: "a".repeat(22), ownerType: "team", ownerUid: teamUid },
          { uid: "b".repeat(22), ownerType: "team", ownerUid: newUid(), access: "granted" },
        ],
      }),
    });
    router.service(factories.FactoryService, {
      getFactory({ uid }) {
        const teamUid = knownFactories.get(uid);
        if (!teamUid) throw notFound("factory");
        return { factory: { uid, teamUid, name: "F" } };
      },
    });
    router.service(webhooks.WebhookService, {
      async updateManagedSecret({ teamUid, name, revision, value }) {
        await onPush();
        pushed.push({ teamUid, name, revision, value });
        return {};
      },
    });
    router.service(metricsApi.MetricsService, {
      getCostPerPullRequest: () => ({ scope: { asOf: {}, startDate: {}, endDate: {} }, cost: {} }),
    });
    router.service(events.EventFeedService, serveEventFeed(foreignLog));
  };
  const allow = {
    ...allowServices(orchestrator.LeaseService, { checkLease: ["gateway"] }),
    ...allowServices(events.EventFeedService, { read: ["gateway"] }),
    ...allowServices(webhooks.WebhookService, { updateManagedSecret: ["gateway"] }),
  };
  const transport = inProcess(upstream, { service: "upstream", verifier, log, metrics, allow });
  const compose = (): Promise<Gateway> =>
    exportJWK(publicKey).then((jwk) =>
      composeGateway({
        databaseUrl: own.url,
        masterKey: new Uint8Array(32).fill(3),
        publicUrl: "https://mill.example",
        signer: signers.gateway,
        verifier,
        clock,
        log,
        metrics,
        upstreams: {
          orchestrator: transport,
          factories: transport,
          scheduler: transport,
          scoring: transport,
          metrics: transport,
          webhookIngress: transport,
        },
        poolSize: 4,
        ...(consoleDir === undefined ? {} : { consoleDir }),
        ...(hasOwnerKey && { bootstrapApiKey: APP_KEY }),
        provider,
        runTokenKeys: { find: async () => ({ ...jwk, alg: "EdDSA", kid: "run-tokens.test" }) },
      }),
    );
  const gateway = await compose();
  const keys = await gateway.bootstrap();
  await gateway.start();
  const api: Api = await serveApi({ listener: gateway.requestListener, document: gateway.openApi }, APP_KEY);
  const rpc = inProcess(gateway.routes, { service: "gateway", verifier, log, metrics, allow: gateway.allow });
  const client = <S extends Parameters<typeof clientFor>[0]>(service: S, from: keyof typeof signers) =>
    clientFor(service, rpc, { signer: signers[from] });

  return {
    api,
    gateway,
    keys,
    clock,
    log,
    leases,
    pushed,
    /** Sets the handler of secrets pushed to the webhook ingress. */
    whenPushed: (f: () => Promise<void>) => void (onPush = f),
    knownFactories,
    compose,
    database: own.database,
    identityOf: (from: "factories" | "orchestrator") => client(identity.IdentityService, from),
    definitions: client(definitions.DefinitionOwnerService, "factories"),
    feed: client(events.EventFeedService, "factories"),
    /** Publishes an event as an upstream service. */
    publish: (event: Partial<NewEvent> & Pick<NewEvent, "type" | "entity" | "entityUid">) =>
      foreign.database.transaction((tx) =>
        appendEvents(tx, [
          { entityVersion: 1, actor: { type: "user", uid: newUid() }, requestId: newUid(), payload: {}, ...event },
        ]),
      ),
    runToken: async (claims: Record<string, unknown>, expires = "5m") =>
      `mwr_${await new SignJWT(claims)
        .setProtectedHeader({ alg: "EdDSA" })
        .setExpirationTime(Math.floor(clock.now().getTime() / 1000) + (expires === "5m" ? 300 : -10))
        .sign(privateKey)}`,
    /** Creates another team through the public API. Returns it with its owner's key. */
    async newTeam(name: string) {
      const { body } = await api.call("POST", "/api/v1/team", { body: { name, owner_email: `${name}@example.com` } });
      return { uid: body.team.uid as string, key: body.api_key as string };
    },
    async close() {
      await api.close();
      await gateway.stop();
      await foreignLog.stop();
      await own.close();
      await foreign.close();
    },
  };
}

export type TestGateway = Awaited<ReturnType<typeof openGateway>>;
