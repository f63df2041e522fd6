import { randomUUID } from "node:crypto";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { SandboxGone } from "./channel.ts";
import { launchBubblewrap, launchPlain } from "./launch.ts";
import { Sandbox } from "./sandbox.ts";
import { EXCHANGE, HOME, WORKSPACE, type Mount, type SandboxSpec } from "./spec.ts";

const START_TIMEOUT_MS = 15_000;

/** Starts a sandbox and waits until it answers. Errors: throws, with what bubblewrap said, when it cannot start. */
export async function startSandbox(spec: SandboxSpec): Promise<Sandbox> {
  await mkdir(spec.dir, { recursive: true, mode: 0o700 });
  if (spec.kind === "none") return start(spec, true);
  // Older systems cannot close user namespaces; the sandbox is then a little weaker, not useless.
  return start(spec, true).catch(() => start(spec, false));
}

/** The sandbox of an execution: workspace, home and exchange directory beneath `dir`. */
export async function startWorkspaceSandbox(kind: SandboxSpec["kind"], dir: string, env: Readonly<Record<string, string>>): Promise<Sandbox> {
  const mounts: Mount[] = [
    { source: join(dir, "workspace"), target: WORKSPACE, writable: true },
    { source: join(dir, "home"), target: HOME, writable: true },
    { source: join(dir, "exchange"), target: EXCHANGE, writable: true },
  ];
  for (const mount of mounts) await mkdir(mount.source, { recursive: true, mode: 0o700 });
  return startSandbox({ kind, dir: join(dir, "sandbox"), mounts, network: false, env });
}

async function start(spec: SandboxSpec, disableUserns: boolean): Promise<Sandbox> {
  const tag = randomUUID();
  const sandbox = new Sandbox(spec, spec.kind === "bwrap" ? await launchBubblewrap(spec, disableUserns) : await launchPlain(spec, tag), tag);
  const timeout = new AbortController();
  try {
    const tooLate = pause(START_TIMEOUT_MS, undefined, { signal: timeout.signal }).then(() => Promise.reject(new SandboxGone("The sandbox did not answer.")));
    tooLate.catch(() => undefined);
    await Promise.race([sandbox.greet(), tooLate]);
    return sandbox;
  } catch (error) {
    sandbox.kill();
    await sandbox.gone;
    throw error;
  } finally {
    timeout.abort();
  }
}
