import type { Lifecycle } from "./lifecycle.ts";

type SignalLog = {
  info(fields: { signal: string }, message: string): void;
  warn(fields: { component: string }, message: string): void;
};

/** The source of signals and the exit function; `process` outside tests. */
type SignalProcess = {
  on(signal: "SIGTERM" | "SIGINT", listener: () => void): unknown;
  exit(code: number): void;
};

/** Time limit for the whole stop after draining. */
const STOP_MS = 15_000;

/**
 * On SIGTERM or SIGINT drains the lifecycle for `drainMs`, stops it within 15 s and exits with 0; a second signal exits at
 * once with 1.
 */
export function stopOnSignals(
  lifecycle: Lifecycle,
  log: SignalLog,
  { drainMs = 0, target = process }: { readonly drainMs?: number; readonly target?: SignalProcess } = {},
): void {
  let signalled = false;
  const stopAndExit = async (): Promise<void> => {
    if (drainMs > 0) await lifecycle.drain(drainMs);
    for (const component of await lifecycle.stop(STOP_MS))
      log.warn({ component }, "component did not stop cleanly within 15 s");
    target.exit(0);
  };
  const onSignal = (signal: string) => () => {
    if (signalled) return target.exit(1);
    signalled = true;
    log.info({ signal }, "stopping");
    void stopAndExit();
  };
  target.on("SIGTERM", onSignal("SIGTERM"));
  target.on("SIGINT", onSignal("SIGINT"));
}
