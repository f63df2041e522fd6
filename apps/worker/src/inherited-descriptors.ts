import { closeSync, readdirSync, readFileSync } from "node:fs";

const CLOSE_ON_EXEC = 0o2000000;
const FIRST = 3;

/**
 * Closes the file descriptors that this process inherited and would pass on to the programs that it starts: an
 * inherited directory would expose the host's files to a sandbox. Node.js sets close-on-exec on its own descriptors.
 * The IPC channel to a parent stays open. Does nothing on systems other than Linux.
 */
export function closeInheritedDescriptors(env: Readonly<Record<string, string | undefined>>): void {
  if (process.platform !== "linux") return;
  for (const descriptor of readdirSync("/proc/self/fd").map(Number)) {
    if (descriptor < FIRST || String(descriptor) === env["NODE_CHANNEL_FD"] || !isInherited(descriptor)) continue;
    closeSync(descriptor);
  }
}

function isInherited(descriptor: number): boolean {
  try {
    const flags = /^flags:\s*([0-7]+)$/m.exec(readFileSync(`/proc/self/fdinfo/${descriptor}`, "utf8"))?.[1];
    return flags !== undefined && (Number.parseInt(flags, 8) & CLOSE_ON_EXEC) === 0;
  } catch {
    return false; // the descriptor of the directory listing itself
  }
}
