import type { worker } from "@millwright/contracts";
import type { Logger } from "@millwright/telemetry";
import type { WorkerClient } from "./client.ts";
import { platformError } from "./platform-error.ts";
import { retryDelayMs } from "./retrying.ts";
import type { Session } from "./session.ts";
import { pause, type Timers } from "../time/timers.ts";

export type SubscriptionDeps = {
  readonly client: Pick<WorkerClient, "subscribe">;
  readonly session: Session;
  readonly timers: Timers;
  readonly log: Logger;
  readonly onDirective: (directive: worker.Directive) => void;
  readonly onWorkAvailable: () => void;
};

/**
 * Reads directives from a server stream, with low latency, until `signal` is aborted. The stream may fail at any time:
 * heartbeats deliver the same directives, so a failure affects only latency.
 */
export async function subscribe(deps: SubscriptionDeps, signal: AbortSignal): Promise<void> {
  for (let failures = 0; !signal.aborted; failures++) {
    try {
      await readStream(deps, signal, () => (failures = 0));
    } catch (error) {
      if (signal.aborted) return;
      deps.log.debug({ operation: "Subscribe", reason: platformError(error).reason }, "stream ended");
    }
    await pause(deps.timers, retryDelayMs(deps.session.timings(), failures), signal).catch(() => {});
  }
}

async function readStream(deps: SubscriptionDeps, signal: AbortSignal, onMessage: () => void): Promise<void> {
  const { token } = await deps.session.current(signal);
  const silence = new AbortController();
  const watch = () =>
    deps.timers.after(deps.session.timings().streamSilenceMs, () => silence.abort(new Error("The stream is silent.")));
  let cancelWatch = watch();
  try {
    for await (const message of deps.client.subscribe({}, { signal: AbortSignal.any([signal, silence.signal]) })) {
      cancelWatch();
      cancelWatch = watch();
      onMessage();
      for (const directive of message.directives) deps.onDirective(directive);
      if (message.workAvailable) deps.onWorkAvailable();
    }
  } catch (error) {
    if (platformError(error).reason === "session_invalid") await deps.session.invalidate(token);
    throw error;
  } finally {
    cancelWatch();
  }
}
