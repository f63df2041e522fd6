import type { Transport } from "@connectrpc/connect";
import type { BlobStore } from "@millwright/blobs";
import type { ServiceOptions } from "@millwright/service";
import type { IdentityOptions, ProviderSettings } from "./identity/index.ts";
import type { RequestListener } from "./rest/index.ts";

/** Options of the gateway. */
export type GatewayOptions = ServiceOptions &
  Omit<IdentityOptions, "database" | "upstreams" | "provider"> & {
    /** The OpenID Connect provider that people sign in with, and its name on the button. */
    readonly provider?: (ProviderSettings & { readonly label: string }) | undefined;
    readonly upstreams: {
      orchestrator: Transport;
      factories: Transport;
      scheduler: Transport;
      scoring: Transport;
      metrics: Transport;
      webhookIngress: Transport;
    };
    /** Serves the store's signed URLs under `/blobs/…`. Absent if signed URLs point to a bucket. */
    readonly blobs?: { store: BlobStore; signingKey: Uint8Array; acceptedKeys?: readonly Uint8Array[] };
    /** The orchestrator's listener for workers, mounted under `/rpc/`. */
    readonly workerListener?: RequestListener;
    /** The webhook ingress's listener, mounted under `/webhooks/`. Absent if the webhook ingress has its own port. */
    readonly webhookListener?: RequestListener;
    /** Serves `/metrics` on the public port. Absent if the process has an operations port. */
    readonly publicMetrics?: { readonly metricsKey?: string | undefined };
    /** Directory of the built console. Default: `apps/console/dist` beside this app. */
    readonly consoleDir?: string;
    /** Networks that requests of service-hosted agents come from, in canonical form. Default: none. */
    readonly egressRanges?: readonly string[];
    /** For how many days the audit log retains its entries; 0 or absent: forever. */
    readonly auditRetentionDays?: number;
    /** Alternative names of the active-team header, in addition to the specification's name. */
    readonly teamHeaderAliases?: readonly string[];
  };
