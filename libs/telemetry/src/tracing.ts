import { optional, readConfig, type Env } from "@millwright/config";
import type { Logger } from "./logger.ts";
import type { Metrics } from "./metrics.ts";
import { NO_TRACER, type Tracer } from "./tracer.ts";

/** The span exporter of this process. */
export interface Tracing {
  /** Returns the tracer of one service; services that share a process have one each. */
  tracer(service: string): Tracer;
  /** Sends the remaining spans, for at most a few seconds. Never rejects. */
  stop(): Promise<void>;
}

export type TracingSettings = ReturnType<typeof loadTracingSettings>;

const NAMES = /^OTEL_[A-Z0-9_]+$/;

/**
 * OpenTelemetry's own variables, as in its specification. The exporter's library reads the variables that are not
 * listed here (headers, timeout, compression, certificates: `OTEL_EXPORTER_OTLP_*`) and `OTEL_RESOURCE_ATTRIBUTES`
 * itself.
 */
export const loadTracingSettings = (env: Env) => {
  const settings = readConfig(env, {
    /** An OTLP/HTTP collector, such as http://127.0.0.1:4318. Absent: no tracing. */
    endpoint: optional.url("OTEL_EXPORTER_OTLP_ENDPOINT"),
    /** As above for traces only, with its path. */
    tracesEndpoint: optional.url("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"),
    /** "http/protobuf" or "http/json". */
    protocol: optional.string("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf"),
    tracesProtocol: optional.string("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"),
    /** "otlp" or "none". */
    exporter: optional.string("OTEL_TRACES_EXPORTER", "otlp"),
    isDisabled: optional.bool("OTEL_SDK_DISABLED", false),
    /** "always_on", "always_off", "traceidratio", each also with the prefix "parentbased_". */
    sampler: optional.string("OTEL_TRACES_SAMPLER", "parentbased_always_on"),
    /** Fraction of the traces, from 0 to 1, for the ratio samplers. */
    samplerArgument: optional.string("OTEL_TRACES_SAMPLER_ARG", "1"),
    /** Replaces the names of the services. */
    serviceName: optional.string("OTEL_SERVICE_NAME"),
    /** Milliseconds between two batches. */
    delayMs: optional.int("OTEL_BSP_SCHEDULE_DELAY", 5_000),
    /** Maximum number of queued spans; further ones are dropped. */
    queueMax: optional.int("OTEL_BSP_MAX_QUEUE_SIZE", 2_048),
    batchMax: optional.int("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", 512),
  });
  return {
    ...settings,
    isOn:
      (settings.endpoint ?? settings.tracesEndpoint) !== undefined &&
      settings.exporter === "otlp" &&
      !settings.isDisabled,
    /** All variables unchanged, for a child process. */
    environment: Object.fromEntries(
      Object.entries(env).filter((entry): entry is [string, string] => NAMES.test(entry[0]) && entry[1] !== undefined),
    ),
  };
};

const OFF: Tracing = { tracer: () => NO_TRACER, stop: async () => {} };

export type TracingDeps = { readonly log: Logger; readonly metrics?: Metrics };

/**
 * Starts sending spans if a collector is configured; otherwise loads nothing.
 * Throws for an invalid setting. An unreachable collector is not an error: its spans are lost.
 */
export async function startTracing(settings: TracingSettings, deps: TracingDeps): Promise<Tracing> {
  if (!settings.isOn) return OFF;
  const { openTelemetry } = await import("./open-telemetry.ts"); // 27 MB: only for those who use it
  return openTelemetry(settings, deps);
}
