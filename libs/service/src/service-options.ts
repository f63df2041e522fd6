import type { Clock } from "@millwright/clock";
import type { WakeupBus, NatsLink } from "@millwright/events";
import type { CallerSigner, CallerVerifier } from "@millwright/rpc";
import type { Logger, Metrics, Tracer } from "@millwright/telemetry";

/** The dependencies of every service's object graph. */
export type ServiceOptions = {
  readonly databaseUrl: string;
  readonly poolSize?: number;
  /** 32 bytes; further keys are derived from it, such as the key of page tokens. */
  readonly masterKey: Uint8Array;
  /** During a rotation: another master key, whose secrets, tokens and links are accepted, too. */
  readonly secondaryMasterKey?: Uint8Array | undefined;
  /** Public URL of the platform: the origin of links and signed URLs. */
  readonly publicUrl: string;
  readonly signer: CallerSigner;
  readonly verifier: CallerVerifier;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Metrics;
  /** Records spans; absent: none. */
  readonly tracer?: Tracer;
  /** Notified by this service's log; wakes its consumers of other services' logs. */
  readonly wakeups?: WakeupBus;
  /** Where the events of this service are published; absent: not published. */
  readonly nats?: NatsLink;
  /** For how many days this service's events are retained in its log; absent: forever. */
  readonly eventRetentionDays?: number | undefined;
};
