import { once } from "node:events";

/** How the demo ends: at once, when a key is pressed, or when a signal arrives. */
export type DemoEnd = "exit" | "key" | "signal";

/**
 * Returns how the demo ends. On a terminal it waits for a key, so that its links can be opened. Without a terminal, and where `CI` is set,
 * nobody can press one and it exits. `--exit` and `--keep` override both.
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

/** Resolves when a key is pressed, the terminal is closed, or a signal arrives. In raw mode Ctrl-C is a key like any other. */
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
