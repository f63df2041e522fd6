import type { Clock } from "@millwright/clock";
import type { WakeupBus, NatsLink } from "@millwright/events";
import type { CallerSigner, CallerVerifier } from "@millwright/rpc";
import type { Logger, Metrics, Tracer } from "@millwright/telemetry";

/** What the graph of every service is composed of. */
export type ServiceOptions = {
  readonly databaseUrl: string;
  readonly poolSize?: number;
  /** 32 bytes; further keys are derived from it, such as that of page tokens. */
  readonly masterKey: Uint8Array;
  /** Where users reach the platform: the origin of links and signed URLs. */
  readonly publicUrl: string;
  readonly signer: CallerSigner;
  readonly verifier: CallerVerifier;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Metrics;
  /** Records spans; absent: none. */
  readonly tracer?: Tracer;
  /** Rung by this service's log, and heard by its consumers of others'. */
  readonly wakeups?: WakeupBus;
  /** Where the events of this service are published; absent: nowhere. */
  readonly nats?: NatsLink;
};
