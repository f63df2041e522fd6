import { once } from "node:events";

/** When the demo ends: immediately after its work, when a key is pressed, or when a signal arrives. */
export type DemoEnd = "exit" | "key" | "signal";

/**
 * Returns when the demo ends. On a terminal it waits for a key, so that its links can be opened. It exits without a
 * terminal and where `CI` is set, because there is no user to press a key. `--exit` and `--keep` override both.
 */
export function demoEnd({
  exit,
  keep,
  isTerminal,
  env,
}: {
  exit: boolean;
  keep: boolean;
  isTerminal: boolean;
  env: NodeJS.ProcessEnv;
}): DemoEnd {
  if (keep) return "signal";
  return exit || !isTerminal || env["CI"] ? "exit" : "key";
}

/** Resolves when SIGINT or SIGTERM arrives. */
export async function untilSignal(): Promise<void> {
  await Promise.race([once(process, "SIGINT"), once(process, "SIGTERM")]);
}

/**
 * Resolves when a key is pressed, the terminal is closed, or a signal arrives. In raw mode, Ctrl-C is an ordinary key.
 */
export async function untilKeyPressed(terminal: NodeJS.ReadStream): Promise<void> {
  terminal.setRawMode(true);
  terminal.resume();
  try {
    await Promise.race([once(terminal, "data"), once(terminal, "end"), untilSignal()]);
  } finally {
    terminal.setRawMode(false);
    terminal.pause();
  }
}
