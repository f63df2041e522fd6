import { NO_TRACER } from "./tracer.ts";
import type { Tracing, TracingDeps, TracingSettings } from "./tracing-settings.ts";

const OFF: Tracing = { tracer: () => NO_TRACER, stop: async () => {} };

/**
 * Starts sending spans if a collector is configured; otherwise loads nothing.
 * An unreachable collector is not an error: its spans are lost.
 */
export async function startTracing(settings: TracingSettings, deps: TracingDeps): Promise<Tracing> {
  if (!settings.isOn) return OFF;
  const { openTelemetry } = await import("./open-telemetry.ts"); // 27 MB: only for those who use it
  return openTelemetry(settings, deps);
}
