import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import {
  ROOT_CONTEXT,
  SpanKind as Kind,
  SpanStatusCode,
  trace,
  TraceFlags,
  type SpanContext,
  type Tracer as OtelTracer,
} from "@opentelemetry/api";
import { detectResources, resourceAttributesEnvDetector, resourceFromAttributes } from "@opentelemetry/resources";
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  BatchSpanProcessor,
  ParentBasedSampler,
  TraceIdRatioBasedSampler,
  TracerProvider,
  type Sampler,
  type SpanExporter,
} from "@opentelemetry/sdk-trace";
import type { TraceContext } from "./trace-context.ts";
import type { Span, SpanKind, Tracer } from "./tracer.ts";
import type { Tracing, TracingDeps, TracingSettings } from "./tracing-settings.ts";

const SEND_LEFT_MS = 3_000;
const ATTRIBUTE_CHARACTERS_MAX = 256;
/** Interval of the warnings about an unreachable collector. */
const WARN_EVERY_MS = 60_000;

const { version } = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8")) as {
  version: string;
};

/**
 * Records spans with the OpenTelemetry SDK and sends them in batches by OTLP over HTTP. Loaded only if a collector is
 * configured.
 */
export async function openTelemetry(settings: TracingSettings, deps: TracingDeps): Promise<Tracing> {
  const { delayMs, queueMax, batchMax, serviceName } = settings;
  const sampler = samplerOf(settings);
  const processor = new BatchSpanProcessor({
    exporter: reportingLoss(await exporterOf(settings), deps),
    ...{ scheduledDelayMillis: delayMs, maxQueueSize: queueMax, maxExportBatchSize: Math.min(batchMax, queueMax) },
  });
  const instance = randomUUID();
  const given = detectResources({ detectors: [resourceAttributesEnvDetector] });
  const tracers = new Map<string, Tracer>();
  const make = (service: string): Tracer => {
    const own = {
      "service.namespace": "millwright",
      "service.name": serviceName ?? service,
      "service.version": version,
      "service.instance.id": instance,
    };
    const resource = resourceFromAttributes({ ...own, "millwright.service": service }).merge(given);
    const provider = new TracerProvider({
      resource,
      sampler,
      spanProcessors: [processor],
      spanLimits: { attributeValueLengthLimit: ATTRIBUTE_CHARACTERS_MAX },
    });
    return tracerOn(provider.getTracer("millwright", version));
  };
  return {
    tracer(service) {
      const tracer = tracers.get(service) ?? make(service);
      tracers.set(service, tracer);
      return tracer;
    },
    stop: () => within(SEND_LEFT_MS, processor.shutdown()),
  };
}

const KINDS: Readonly<Record<SpanKind, Kind>> = {
  internal: Kind.INTERNAL,
  server: Kind.SERVER,
  client: Kind.CLIENT,
  consumer: Kind.CONSUMER,
};

const tracerOn = (otel: OtelTracer): Tracer => ({
  isRecording: true,
  start(name, { kind = "internal", attributes = {}, parent, links = [] } = {}): Span {
    const context = parent ? trace.setSpanContext(ROOT_CONTEXT, toOtel(parent)) : ROOT_CONTEXT;
    const span = otel.startSpan(
      name,
      { kind: KINDS[kind], attributes, links: links.map((link) => ({ context: toOtel(link) })) },
      context,
    );
    const { traceId, spanId, traceFlags } = span.spanContext();
    let isFailed = false;
    return {
      context: { traceId, spanId, isSampled: (traceFlags & TraceFlags.SAMPLED) !== 0 },
      rename: (to) => void span.updateName(to),
      set: (more) => void span.setAttributes(more),
      fail(errorType) {
        if (!isFailed) span.setAttribute("error.type", errorType).setStatus({ code: SpanStatusCode.ERROR });
        isFailed = true;
      },
      end: () => span.end(),
    };
  },
});

const toOtel = ({ traceId, spanId, isSampled }: TraceContext): SpanContext => ({
  traceId,
  spanId,
  traceFlags: isSampled ? TraceFlags.SAMPLED : TraceFlags.NONE,
  isRemote: true,
});

function samplerOf({ sampler, sampledFraction }: TracingSettings): Sampler {
  const root = rootSampler(sampler.replace(/^parentbased_/, ""), sampledFraction);
  return sampler.startsWith("parentbased_") ? new ParentBasedSampler({ root }) : root;
}

function rootSampler(name: string, fraction: number): Sampler {
  if (name === "traceidratio") return new TraceIdRatioBasedSampler(fraction);
  return name === "always_on" ? new AlwaysOnSampler() : new AlwaysOffSampler();
}

/** The library reads address, headers, timeout, compression and certificates from the environment itself. */
async function exporterOf({ protocol, tracesProtocol }: TracingSettings): Promise<SpanExporter> {
  return (tracesProtocol ?? protocol) === "http/json"
    ? new (await import("@opentelemetry/exporter-trace-otlp-http")).OTLPTraceExporter()
    : new (await import("@opentelemetry/exporter-trace-otlp-proto")).OTLPTraceExporter();
}

/** Counts lost spans and logs a warning periodically. */
function reportingLoss(exporter: SpanExporter, { log, metrics }: TracingDeps): SpanExporter {
  const lost = metrics?.counter("millwright_trace_spans_lost_total", "Spans that no collector took.");
  let warnedMs = Number.NEGATIVE_INFINITY;
  return {
    export(spans, done) {
      exporter.export(spans, (result) => {
        if (result.code.valueOf() !== 0) {
          lost?.inc(spans.length);
          const nowMs = performance.now();
          if (nowMs - warnedMs > WARN_EVERY_MS)
            log.warn({ component: "tracing", count: spans.length, error: result.error }, "spans could not be sent");
          warnedMs = nowMs - warnedMs > WARN_EVERY_MS ? nowMs : warnedMs;
        }
        done(result);
      });
    },
    forceFlush: () => exporter.forceFlush?.() ?? Promise.resolve(),
    shutdown: () => exporter.shutdown(),
  };
}

async function within(ms: number, act: Promise<unknown>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>((resolve) => (timer = setTimeout(resolve, ms)));
  await Promise.race([act.catch(() => {}), late]);
  clearTimeout(timer);
}
