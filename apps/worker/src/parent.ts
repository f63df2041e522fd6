/** The part of a process that reports the end of its parent. */
export type ChildProcessSide = {
  readonly connected?: boolean;
  once(event: "disconnect", act: () => void): unknown;
  readonly stdin: { resume(): unknown; once(event: "end" | "close" | "error", act: () => void): unknown };
};

/**
 * Calls `act` once when the parent has ended for any reason: the parent's end of the IPC channel, or otherwise of
 * standard input, closes with it. Comparing parent process ids would not work in containers and on macOS.
 */
export function onParentGone(side: ChildProcessSide, act: () => void): void {
  let isReported = false;
  const onEnd = (): void => {
    if (isReported) return;
    isReported = true;
    act();
  };
  if (side.connected) {
    side.once("disconnect", onEnd);
    return;
  }
  for (const event of ["end", "close", "error"] as const) side.stdin.once(event, onEnd);
  side.stdin.resume();
}
