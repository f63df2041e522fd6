import { optional, readConfig, type Env, type ValuesOf } from "@millwright/config";
import type { Logger } from "./logger.ts";
import type { Metrics } from "./metrics.ts";
import type { Tracer } from "./tracer.ts";

/** The span exporter of this process. */
export interface Tracing {
  /** Returns the tracer of one service; services that share a process have one each. */
  tracer(service: string): Tracer;
  /** Sends the remaining spans, for at most a few seconds. Never rejects. */
  stop(): Promise<void>;
}

const NAMES = /^OTEL_[A-Z0-9_]+$/;

const PROTOCOLS = ["http/protobuf", "http/json"] as const;

/**
 * OpenTelemetry's own variables, as in its specification. The exporter's library reads the variables that are not
 * listed here (timeout, compression, certificates: `OTEL_EXPORTER_OTLP_*`) itself.
 */
export const tracingSettings = {
  endpoint: optional.url(
    "OTEL_EXPORTER_OTLP_ENDPOINT",
    "An OTLP/HTTP collector of [traces](observability.md#traces), such as http://127.0.0.1:4318. Absent: no tracing.",
  ),
  tracesEndpoint: optional.url("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "As above for traces only, with its path."),
  protocol: optional.oneOf("OTEL_EXPORTER_OTLP_PROTOCOL", "The encoding of spans.", {
    values: PROTOCOLS,
    default: "http/protobuf",
  }),
  tracesProtocol: optional.oneOf("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "As above for traces only.", {
    values: PROTOCOLS,
  }),
  exporter: optional.string("OTEL_TRACES_EXPORTER", 'Any value other than "otlp" turns tracing off.', {
    default: "otlp",
  }),
  isDisabled: optional.bool("OTEL_SDK_DISABLED", "Whether tracing is off.", { default: false }),
  sampler: optional.oneOf("OTEL_TRACES_SAMPLER", "Which traces are sent.", {
    values: [
      "always_on",
      "always_off",
      "traceidratio",
      "parentbased_always_on",
      "parentbased_always_off",
      "parentbased_traceidratio",
    ],
    default: "parentbased_always_on",
  }),
  sampledFraction: optional.fraction("OTEL_TRACES_SAMPLER_ARG", "Fraction of the traces, for the ratio samplers.", {
    default: 1,
  }),
  serviceName: optional.string("OTEL_SERVICE_NAME", "Replaces the names of the services."),
  resourceAttributes: optional.string(
    "OTEL_RESOURCE_ATTRIBUTES",
    "Attributes of every span, as `name=value, …`; read by the exporter's library.",
  ),
  headers: optional.secret(
    "OTEL_EXPORTER_OTLP_HEADERS",
    "Headers of requests to the collector, as `name=value, …`; read by the exporter's library.",
  ),
  delayMs: optional.int("OTEL_BSP_SCHEDULE_DELAY", "Milliseconds between two batches.", { default: 5_000 }),
  queueMax: optional.int("OTEL_BSP_MAX_QUEUE_SIZE", "Maximum number of queued spans; further ones are dropped.", {
    default: 2_048,
    min: 1,
  }),
  batchMax: optional.int("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "Maximum number of spans in one request.", {
    default: 512,
    min: 1,
  }),
};

export type TracingSettings = ReturnType<typeof tracingOf>;

/** Returns what the values of the settings mean for this process. */
export const tracingOf = (values: ValuesOf<typeof tracingSettings>, env: Env) => ({
  ...values,
  isOn: (values.endpoint ?? values.tracesEndpoint) !== undefined && values.exporter === "otlp" && !values.isDisabled,
  /** All variables unchanged, for a child process. */
  environment: Object.fromEntries(
    Object.entries(env).filter((entry): entry is [string, string] => NAMES.test(entry[0]) && entry[1] !== undefined),
  ),
});

/** Reads the settings of tracing alone. */
export const loadTracingSettings = (env: Env) => tracingOf(readConfig(env, tracingSettings), env);

export type TracingDeps = { readonly log: Logger; readonly metrics?: Metrics };
