import type { Transport } from "@connectrpc/connect";
import type { BlobStore } from "@millwright/blobs";
import type { KeySource } from "@millwright/rpc";
import type { ServiceOptions } from "@millwright/service";
import type { RequestListener } from "./rest/index.ts";

/** What the gateway is composed of. */
export type GatewayOptions = ServiceOptions & {
  readonly upstreams: {
    orchestrator: Transport;
    factories: Transport;
    scheduler: Transport;
    scoring: Transport;
    metrics: Transport;
    webhookIngress: Transport;
  };
  /** Serves `/blobs/…` from the store's signed URLs; absent when they lead to a bucket. */
  readonly blobs?: { store: BlobStore; signingKey: Uint8Array };
  /** The first owner's key; absent: a random one. Used on the first start only. */
  readonly bootstrapApiKey?: string | undefined;
  /** The platform's worker key; absent: one that is derived from the master key. */
  readonly workerKey?: string | undefined;
  /** The orchestrator's door for workers, mounted under `/rpc/`. */
  readonly workerDoor?: RequestListener;
  /** The webhook ingress's own door, mounted under `/webhooks/`; absent: it has a port of its own. */
  readonly webhookDoor?: RequestListener;
  /** Serves `/metrics` on the public port; absent: the process has a port for operations. */
  readonly publicMetrics?: { readonly metricsKey?: string | undefined };
  /** Public keys of the run tokens, which the orchestrator signs. */
  readonly runTokenKeys: KeySource;
  /** Networks that requests of service-hosted agents come from, canonical; none by default. */
  readonly egressRanges?: readonly string[];
  /** Names of the active-team header, beside the specification's own. */
  readonly teamHeaderAliases?: readonly string[];
};
