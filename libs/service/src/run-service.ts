import type { RequestListener } from "node:http";
import type { Transport } from "@connectrpc/connect";
import { systemClock } from "@millwright/clock";
import type { Env } from "@millwright/config";
import { migrate } from "@millwright/database";
import { localWakeupBus, NatsLink } from "@millwright/events";
import { Lifecycle, releaseStartupHeap, stopOnSignals } from "@millwright/lifecycle";
import {
  CallerSigner,
  CallerVerifier,
  probeHealth,
  upstreamTransport,
  RemoteKeys,
  serveHttp2,
  type Http2Server,
  type UpstreamTransport,
  type PublicKey,
  type Routes,
  type ServerOptions,
} from "@millwright/rpc";
import {
  createLogger,
  ignoreStandardStreamErrors,
  Metrics,
  startTracing,
  tracingOf,
  type Logger,
  type Tracing,
} from "@millwright/telemetry";
import { checkUpstreams } from "./check-upstreams.ts";
import { listen, type HttpServer } from "./http-server.ts";
import { handleOperations } from "./operations.ts";
import { readSecrets, readTls, type Secrets, type Tls } from "./secrets.ts";
import type { ServiceOptions } from "./service-options.ts";
import type { ServiceSettings } from "./settings.ts";

/** Endpoints of an upstream service: its RPC addresses, and the addresses of its public keys. */
export type UpstreamAddresses = { readonly urls: readonly string[]; readonly jwksUrls: readonly string[] };

type ProcessContext = {
  readonly secrets: Secrets;
  readonly tls: Tls;
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly tracing: Tracing;
};

export type Composed = {
  readonly routes: Routes;
  readonly allow?: ServerOptions["allow"];
  /** See `ServerOptions.open` and `quiet`. */
  readonly open?: readonly string[];
  readonly quiet?: readonly string[];
  /** Published together with the service's own key. */
  readonly publicKeys?: readonly PublicKey[];
  /** A public HTTP/1.1 port. */
  readonly http?: { readonly port: number; readonly listener: RequestListener };
  start(): Promise<void>;
  stop(): Promise<void>;
  ready(): Promise<boolean>;
};

export type ServicePlan<C extends ServiceSettings, N extends string> = {
  readonly name: string;
  readonly env: Env;
  loadConfig(env: Env): C;
  /** The services it calls, or that call it. */
  upstreams(config: C): Readonly<Record<N, UpstreamAddresses>>;
  /** The services that call it and that it does not call: it only reads their keys. */
  callers?(config: C): Readonly<Record<string, Pick<UpstreamAddresses, "jwksUrls">>>;
  /** Migrations to apply before it is composed; replicas may race. */
  readonly migrationsDir: string;
  compose(config: C, base: ServiceOptions, transports: Readonly<Record<N, Transport>>): Promise<Composed>;
};

/**
 * Runs the process of one service: configuration, keys, operations port, migrations, its object graph, its ports;
 * SIGTERM drains it and stops them in reverse. A failure to start is printed to standard error, with exit code 1.
 */
export async function runService<C extends ServiceSettings, N extends string>(plan: ServicePlan<C, N>): Promise<void> {
  ignoreStandardStreamErrors(process);
  try {
    const config = plan.loadConfig(plan.env);
    const log = createLogger({ service: plan.name, level: config.logLevel });
    const metrics = new Metrics({ processMetrics: true });
    const tracing = await startTracing(tracingOf(config.tracing, plan.env), { log, metrics });
    const lifecycle = await processOf(plan, config, {
      secrets: readSecrets(config),
      tls: readTls(config),
      log,
      metrics,
      tracing,
    });
    stopOnSignals(lifecycle, log, { drainMs: config.drainSeconds * 1_000 });
    await lifecycle.start();
    log.info("the service has started");
    releaseStartupHeap();
  } catch (error) {
    process.stderr.write(`${(error as Error).message}\n`);
    process.exit(1);
  }
}

async function processOf<C extends ServiceSettings, N extends string>(
  plan: ServicePlan<C, N>,
  config: C,
  { secrets, tls, log, metrics, tracing }: ProcessContext,
): Promise<Lifecycle> {
  const tracer = tracing.tracer(plan.name);
  const signer = await CallerSigner.fromSeed(plan.name, secrets.serviceKey);
  const upstreams = Object.entries<UpstreamAddresses>(plan.upstreams(config));
  const keyOwners = [...upstreams, ...Object.entries(plan.callers?.(config) ?? {})];
  const verifier = new CallerVerifier(
    new RemoteKeys({ owners: Object.fromEntries(keyOwners.map(([name, { jwksUrls }]) => [name, jwksUrls])) }),
  );
  const transports = Object.fromEntries(
    upstreams.map(([name, { urls }]) => [name, upstreamTransport(urls, tls)]),
  ) as Record<N, UpstreamTransport>;
  const nats = config.natsUrl === undefined ? undefined : NatsLink.open(config.natsUrl, plan.name, log);
  const { databaseUrl, databasePool: poolSize, publicUrl, host, eventRetentionDays } = config;
  const { masterKey, secondaryMasterKey } = secrets;
  const wakeups = nats?.wakeups() ?? localWakeupBus();

  const lifecycle = new Lifecycle();
  const stopping = new AbortController();
  const isReady = async () => (await lifecycle.ready()).ready;
  let service: Composed | undefined;
  let operations: HttpServer | undefined;
  let rpc: Http2Server | undefined;
  let http: HttpServer | undefined;
  return lifecycle
    .add("tracing", { stop: () => tracing.stop() })
    .add("operations port", {
      start: async () => {
        operations = await listen(host, config.opsPort);
        operations.serve(
          handleOperations({ lifecycle, metrics, keys: () => [signer.jwk, ...(service?.publicKeys ?? [])] }),
        );
      },
      stop: () => operations?.stop(),
    })
    .add("upstreams", {
      stop: async () => {
        for (const transport of Object.values<UpstreamTransport>(transports)) transport.close();
        await nats?.close();
      },
    })
    .add("migrations", { start: async () => void (await migrate(databaseUrl, plan.migrationsDir)) })
    .add("service", {
      start: async () => {
        service = await plan.compose(
          config,
          {
            databaseUrl,
            poolSize,
            masterKey,
            secondaryMasterKey,
            eventRetentionDays,
            publicUrl,
            signer,
            verifier,
            clock: systemClock,
            log,
            metrics,
            tracer,
            wakeups,
            ...(nats && { nats }),
          },
          transports,
        );
        await service.start();
      },
      stop: () => service?.stop(),
      ready: () => service?.ready() ?? false,
    })
    .add("rpc port", {
      start: async () => {
        const { routes, ...listener } = service!;
        rpc = await serveHttp2(
          routes,
          { service: plan.name, verifier, log, metrics, tracer, ...pick(listener) },
          { port: config.grpcPort, host, isReady, ...(tls.server && { tls: tls.server }) },
        );
      },
      stop: () => rpc?.close(),
    })
    .add("public port", {
      start: async () => {
        if (!service?.http) return;
        http = await listen(host, service.http.port);
        http.serve(service.http.listener);
      },
      drain: () => http?.drain(),
      stop: () => http?.stop(),
    })
    .add("check of upstreams", {
      start: async () => {
        const addresses = Object.fromEntries(upstreams.map(([name, { urls }]) => [name, urls]));
        const probe = (url: string) => probeHealth(url, tls);
        void checkUpstreams({ upstreams: addresses, probe, log }, stopping.signal); // in the background
      },
      stop: async () => stopping.abort(),
    });
}

const pick = ({
  allow,
  open,
  quiet,
}: Pick<Composed, "allow" | "open" | "quiet">): Pick<ServerOptions, "allow" | "open" | "quiet"> => ({
  ...(allow && { allow }),
  ...(open && { open }),
  ...(quiet && { quiet }),
});
