// Runs one replica of the service as a process that can be killed: `node … replica-process.ts '{"databaseUrl",
// "orchestratorUrl", "timeScale", "trialsPerTeam"}'`.
import { systemClock } from "@millwright/clock";
import { events, factories, identity } from "@millwright/contracts";
import { CallerSigner, CallerVerifier, inProcess, upstreamTransport } from "@millwright/rpc";
import { createLogger, Metrics } from "@millwright/telemetry";
import { composeScoring } from "../../src/compose.ts";

type Options = { databaseUrl: string; orchestratorUrl: string; timeScale: number; trialsPerTeam: number };
const { databaseUrl, orchestratorUrl, timeScale, trialsPerTeam } = JSON.parse(process.argv[2]!) as Options;
const signer = await CallerSigner.fromSeed("scoring", new Uint8Array(32).fill(5));
const verifier = new CallerVerifier([signer.jwk]);
const log = createLogger({ service: "scoring", level: "error" });
const metrics = new Metrics();
// Identity and factories have no agents and no events.
const quiet = inProcess(
  (router) => {
    router.service(identity.IdentityService, {});
    router.service(factories.FactoryService, {});
    router.service(events.EventFeedService, {
      read: async () => ({ logUid: "0199a000-0000-7000-8000-000000000001", head: 0n, events: [] }),
    });
  },
  { service: "gateway", verifier, log, metrics, allow: { "millwright.events.v1.EventFeedService/Read": ["scoring"] } },
);
const scoring = composeScoring({
  databaseUrl,
  signer,
  verifier,
  log,
  metrics,
  timeScale,
  trialsPerTeam,
  poolSize: 3,
  masterKey: new Uint8Array(32).fill(7),
  publicUrl: "https://millwright.test",
  clock: systemClock,
  upstreams: { identity: quiet, factories: quiet, orchestrator: upstreamTransport([orchestratorUrl]) },
});
process.on("disconnect", () => process.exit(0)); // exits with the test
await scoring.start();
process.send?.("ready");
