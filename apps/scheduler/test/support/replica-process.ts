// Runs one replica of the service as a process that tests can kill:
// `node … replica-process.ts '{"databaseUrl", "orchestratorUrl", "skewMs", "timeScale"}'`.
import { events, identity } from "@millwright/contracts";
import { CallerSigner, CallerVerifier, inProcess, upstreamTransport } from "@millwright/rpc";
import { createLogger, Metrics } from "@millwright/telemetry";
import { composeScheduler } from "../../src/compose.ts";

const { databaseUrl, orchestratorUrl, skewMs, timeScale } = JSON.parse(process.argv[2]!) as {
  databaseUrl: string;
  orchestratorUrl: string;
  skewMs: number;
  timeScale: number;
};
const signer = await CallerSigner.fromSeed("scheduler", new Uint8Array(32).fill(5));
const verifier = new CallerVerifier([signer.jwk]);
const log = createLogger({ service: "scheduler", level: "error" });
const metrics = new Metrics();
// A gateway and factories without agents and events.
const emptyUpstream = inProcess(
  (router) => {
    router.service(identity.IdentityService, {});
    router.service(events.EventFeedService, {
      read: async () => ({ logUid: "0199a000-0000-7000-8000-000000000001", head: 0n, events: [] }),
    });
  },
  {
    service: "gateway",
    verifier,
    log,
    metrics,
    allow: { "millwright.events.v1.EventFeedService/Read": ["scheduler"] },
  },
);
const scheduler = composeScheduler({
  databaseUrl,
  signer,
  verifier,
  log,
  metrics,
  timeScale,
  poolSize: 3,
  masterKey: new Uint8Array(32).fill(7),
  publicUrl: "https://millwright.test",
  clock: { now: () => new Date(Date.now() + skewMs), monotonicMs: () => performance.now() },
  upstreams: {
    identity: emptyUpstream,
    factories: emptyUpstream,
    orchestrator: upstreamTransport([orchestratorUrl]),
  },
});
process.on("disconnect", () => process.exit(0)); // so that it does not outlive the test
await scheduler.start();
process.send?.("ready");
