import { optional, readConfig, type Env } from "@millwright/config";
import type { Logger } from "./logger.ts";
import type { Metrics } from "./metrics.ts";
import { NO_TRACER, type Tracer } from "./tracer.ts";

/** Where this process sends its spans. */
export interface Tracing {
  /** The tracer of one service; services that share a process have one each. */
  tracer(service: string): Tracer;
  /** Sends what is left, for at most a few seconds. Never rejects. */
  stop(): Promise<void>;
}

export type TracingSettings = ReturnType<typeof loadTracingSettings>;

const NAMES = /^OTEL_[A-Z0-9_]+$/;

/**
 * OpenTelemetry's own variables, as its specification has them. Those of the exporter that are not here (headers, time limit,
 * compression, certificates: `OTEL_EXPORTER_OTLP_*`) and `OTEL_RESOURCE_ATTRIBUTES` are read by its library, from the same environment.
 */
export const loadTracingSettings = (env: Env) => {
  const settings = readConfig(env, {
    /** A collector that takes OTLP over HTTP, such as http://127.0.0.1:4318. Absent: nothing is traced. */
    endpoint: optional.url("OTEL_EXPORTER_OTLP_ENDPOINT"),
    /** The same for traces alone, with its path. */
    tracesEndpoint: optional.url("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"),
    /** "http/protobuf" or "http/json". */
    protocol: optional.string("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf"),
    tracesProtocol: optional.string("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"),
    /** "otlp" or "none". */
    exporter: optional.string("OTEL_TRACES_EXPORTER", "otlp"),
    isDisabled: optional.bool("OTEL_SDK_DISABLED", false),
    /** "always_on", "always_off", "traceidratio", each also with "parentbased_" before it. */
    sampler: optional.string("OTEL_TRACES_SAMPLER", "parentbased_always_on"),
    /** Share of the traces, from 0 to 1, for the ratio samplers. */
    samplerArgument: optional.string("OTEL_TRACES_SAMPLER_ARG", "1"),
    /** Instead of the names of the services. */
    serviceName: optional.string("OTEL_SERVICE_NAME"),
    /** Milliseconds between two sendings. */
    delayMs: optional.int("OTEL_BSP_SCHEDULE_DELAY", 5_000),
    /** Spans kept for sending; what comes on top is dropped. */
    queueMax: optional.int("OTEL_BSP_MAX_QUEUE_SIZE", 2_048),
    batchMax: optional.int("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", 512),
  });
  return {
    ...settings,
    isOn:
      (settings.endpoint ?? settings.tracesEndpoint) !== undefined &&
      settings.exporter === "otlp" &&
      !settings.isDisabled,
    /** All of them as they are, for a process that this one starts. */
    environment: Object.fromEntries(
      Object.entries(env).filter((entry): entry is [string, string] => NAMES.test(entry[0]) && entry[1] !== undefined),
    ),
  };
};

const OFF: Tracing = { tracer: () => NO_TRACER, stop: async () => {} };

export type TracingDeps = { readonly log: Logger; readonly metrics?: Metrics };

/**
 * Starts to send spans, if a collector is configured; else nothing is loaded and nothing costs anything.
 * Errors: a setting that cannot be understood; a collector that cannot be reached is none, only its spans are lost.
 */
export async function startTracing(settings: TracingSettings, deps: TracingDeps): Promise<Tracing> {
  if (!settings.isOn) return OFF;
  const { openTelemetry } = await import("./open-telemetry.ts"); // 27 MB: only for those who use it
  return openTelemetry(settings, deps);
}
