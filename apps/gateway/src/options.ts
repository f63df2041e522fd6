import type { Transport } from "@connectrpc/connect";
import type { BlobStore } from "@millwright/blobs";
import type { Clock } from "@millwright/clock";
import type { Doorbell, NatsLink } from "@millwright/events";
import type { CallerSigner, CallerVerifier, KeySource } from "@millwright/rpc";
import type { Logger, Metrics, Tracer } from "@millwright/telemetry";
import type { RequestListener } from "./rest/index.ts";

/** What the gateway is composed of. */
export type GatewayOptions = {
  databaseUrl: string;
  masterKey: Uint8Array;
  publicUrl: string;
  signer: CallerSigner;
  verifier: CallerVerifier;
  clock: Clock;
  log: Logger;
  metrics: Metrics;
  /** Records spans; absent: none. */
  tracer?: Tracer;
  neighbours: { orchestrator: Transport; factories: Transport; scheduler: Transport; webhookIngress: Transport };
  poolSize?: number;
  doorbell?: Doorbell;
  /** Where the events of this service are published; absent: nowhere. */
  nats?: NatsLink;
  /** Serves `/blobs/…` from the store's signed URLs; absent when they lead to a bucket. */
  blobs?: { store: BlobStore; signingKey: Uint8Array };
  /** The first owner's key; absent: a random one. Used on the first start only. */
  bootstrapApiKey?: string | undefined;
  /** The platform's worker key; absent: one that is derived from the master key. */
  workerKey?: string | undefined;
  /** The orchestrator's door for workers, mounted under `/rpc/`. */
  workerDoor?: RequestListener;
  /** The webhook ingress's own door, mounted under `/webhooks/`; absent: it has a port of its own. */
  webhookDoor?: RequestListener;
  /** Public keys of the run tokens, which the orchestrator signs. */
  runTokenKeys: KeySource;
  /** Networks that requests of service-hosted agents come from, canonical; none by default. */
  egressRanges?: readonly string[];
  /** Names of the active-team header, beside the specification's own. */
  teamHeaderAliases?: readonly string[];
};
