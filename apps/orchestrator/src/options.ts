import type { Transport } from "@connectrpc/connect";
import type { BlobStore } from "@millwright/blobs";
import type { ReplicaBroadcast, ReplicaNotifier } from "@millwright/events";
import type { OutboundRule } from "@millwright/outbound";
import type { ServiceOptions } from "@millwright/service";
import type { ManagedMcpServers } from "./catalog/domain/mcp-servers.ts";
import type { PlatformProvider } from "./catalog/domain/model-providers.ts";
import type { ModelAliases } from "./catalog/domain/models.ts";
import type { CapacityDefaults } from "./catalog/domain/queue-settings.ts";

export type OrchestratorOptions = ServiceOptions & {
  /** Wakes waiting workers and readers at other replicas. Absent: there is only one replica. */
  readonly replicas?: ReplicaNotifier;
  /** Sends text deltas of models to readers at other replicas. */
  readonly liveTextBroadcast?: ReplicaBroadcast;
  readonly upstreams: { readonly identity: Transport; readonly factories: Transport };
  readonly blobs: BlobStore;
  /** Directories that may contain the local repositories of teams. */
  readonly localRepositoryRoots?: readonly string[];
  /** Model providers that every team may use, with the operator's keys. */
  readonly modelProviders?: readonly PlatformProvider[];
  /** Aliases of models. */
  readonly modelAliases?: ModelAliases;
  /** MCP servers that configurations may reference by id. */
  readonly managedMcpServers?: ManagedMcpServers;
  /** Maximum number of tokens of all model calls of one run. Default: 0 (no limit). */
  readonly runTokenLimit?: number;
  /** Divides every duration of leases, offers and heartbeats; for failure tests. */
  readonly timeScale?: number;
  /** Maximum number of concurrent executions of a team, agent or factory that has no limit of its own. */
  readonly capacityDefaults?: CapacityDefaults;
  /** For how many days the newest workspace of a conversation is retained for a follow-up. Default: 30. */
  readonly snapshotDays?: number;
  /** For how many days after the end of a conversation's last run their workers' events are retained. 0: forever. */
  readonly runEventDays?: number;
  /** The same for plans, files and screenshots. */
  readonly artifactDays?: number;
  /** The hosts that may be reached at addresses set by teams. Default: public addresses only. */
  readonly outbound?: OutboundRule;
  /** Replaces the fetch for code hosts. */
  readonly fetch?: typeof fetch;
};
