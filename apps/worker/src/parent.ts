/** What of a process tells that its parent has ended. */
export type ChildProcessSide = {
  readonly connected?: boolean;
  once(event: "disconnect", act: () => void): unknown;
  readonly stdin: { resume(): unknown; once(event: "end" | "close" | "error", act: () => void): unknown };
};

/**
 * Calls back once when the parent is gone, however it died: its end of the IPC channel, or else of our standard input, closes with it.
 * Asked of the operating system this way, not by comparing parent ids, since it works in containers and on macOS too.
 */
export function onParentGone(side: ChildProcessSide, act: () => void): void {
  let isTold = false;
  const onEnd = (): void => {
    if (isTold) return;
    isTold = true;
    act();
  };
  if (side.connected) {
    side.once("disconnect", onEnd);
    return;
  }
  for (const event of ["end", "close", "error"] as const) side.stdin.once(event, onEnd);
  side.stdin.resume();
}
