import type { Lifecycle } from "./lifecycle.ts";

type SignalLog = {
  info(fields: { signal: string }, message: string): void;
  warn(fields: { component: string }, message: string): void;
};

/** Where signals come from and where the exit code goes; `process` outside tests. */
type SignalProcess = {
  on(signal: "SIGTERM" | "SIGINT", listener: () => void): unknown;
  exit(code: number): void;
};

/** The whole stop takes at most this long. */
const STOP_MS = 15_000;

/** SIGTERM and SIGINT stop the lifecycle within 15 s and exit 0; a second signal exits at once with 1. */
export function stopOnSignals(lifecycle: Lifecycle, log: SignalLog, target: SignalProcess = process): void {
  let signalled = false;
  const stopAndExit = async (): Promise<void> => {
    for (const component of await lifecycle.stop(STOP_MS)) log.warn({ component }, "did not stop in order");
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
