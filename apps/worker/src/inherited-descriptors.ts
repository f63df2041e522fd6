import { closeSync, readdirSync, readFileSync } from "node:fs";

const CLOSE_ON_EXEC = 0o2000000;
const FIRST = 3;

/**
 * Closes the file descriptors that this process inherited and would pass on to programs that it starts: a directory among them would show a sandbox the host's
 * files. Node's own are closed on exec; the channel to a parent stays. Linux only, elsewhere nothing is done.
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
    return false; // that of the listing itself
  }
}
