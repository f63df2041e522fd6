import { randomUUID } from "node:crypto";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { canDisableUserns } from "./bubblewrap.ts";
import { SandboxGone } from "./sandbox-errors.ts";
import { claimWorkspace } from "./claim-workspace.ts";
import { launchBubblewrap, launchPlain } from "./launch.ts";
import { limitsFor, type Limits } from "./limits.ts";
import { Sandbox } from "./sandbox.ts";
import type { Mount, Relay, SandboxHost, SandboxSpec } from "./spec.ts";

const START_TIMEOUT_MS = 15_000;
/**
 * Matches bubblewrap's message if it cannot disable user namespaces: on an older kernel, or in a container that hides
 * /proc/sys.
 */
const CANNOT_DISABLE_USERNS = /max_user_namespaces|was not disabled as requested/;

/** Whether user namespaces can be disabled on this machine. Determined by the first sandbox. */
let closesUserns: boolean | undefined;
export const hasClosedUserns = (): boolean => closesUserns === true;

/** Starts a sandbox and waits until it responds. Throws with bubblewrap's message if it cannot start. */
export async function startSandbox(spec: SandboxSpec): Promise<Sandbox> {
  await mkdir(spec.dir, { recursive: true, mode: 0o700 });
  if (spec.host.kind === "none") return start(spec, false);
  closesUserns ??= canDisableUserns() ? undefined : false;
  if (closesUserns === false) return start(spec, false);
  try {
    const sandbox = await start(spec, true);
    closesUserns = true;
    return sandbox;
  } catch (error) {
    if (closesUserns !== undefined || !CANNOT_DISABLE_USERNS.test(error instanceof Error ? error.message : ""))
      throw error;
    closesUserns = false; // without this feature the isolation is slightly weaker but still effective
    return start(spec, false);
  }
}

export type WorkspaceOptions = {
  /** Default: the host's limits of a run that specifies none. */
  readonly limits?: Limits;
  readonly rootfs?: string;
  readonly relays?: readonly Relay[];
  readonly secrets?: readonly string[];
  /** Host directories that are mounted read-only. */
  readonly shown?: readonly Pick<Mount, "source" | "target">[];
};

/** Starts the sandbox of an execution, with workspace and home below `dir`. */
export async function startWorkspaceSandbox(
  host: SandboxHost,
  dir: string,
  env: Readonly<Record<string, string>>,
  options: WorkspaceOptions = {},
): Promise<Sandbox> {
  const { limits = limitsFor(host.limits), rootfs, relays = [], secrets = [], shown = [] } = options;
  const { mounts, uid, release } = await claimWorkspace(host, dir);
  try {
    const spec = {
      host,
      dir: join(dir, "sandbox"),
      mounts: [...mounts, ...shown.map((mount) => ({ ...mount, writable: false }))],
      relays,
      env,
      limits,
      secrets,
    };
    const sandbox = await startSandbox({
      ...spec,
      rootfs,
      uid,
    });
    void sandbox.gone.then(release);
    return sandbox;
  } catch (error) {
    release();
    throw error;
  }
}

async function start(spec: SandboxSpec, disableUserns: boolean): Promise<Sandbox> {
  const tag = randomUUID();
  const cgroup = spec.host.cgroups?.create(spec.limits);
  const sandbox = new Sandbox(spec, await launch(spec, disableUserns, tag, cgroup), { tag, cgroup });
  const timeout = new AbortController();
  try {
    const limitMs = spec.host.startTimeoutMs ?? START_TIMEOUT_MS;
    const timeoutFault = new SandboxGone(`It did not respond within ${limitMs / 1_000} s.`);
    const tooLate = pause(limitMs, undefined, { signal: timeout.signal }).then(() => Promise.reject(timeoutFault));
    tooLate.catch(() => undefined);
    await Promise.race([sandbox.initialize(), tooLate]);
    return sandbox;
  } catch (error) {
    sandbox.kill();
    await sandbox.gone;
    throw error;
  } finally {
    timeout.abort();
  }
}

async function launch(
  spec: SandboxSpec,
  disableUserns: boolean,
  tag: string,
  cgroup: ReturnType<NonNullable<SandboxHost["cgroups"]>["create"]> | undefined,
) {
  try {
    return spec.host.kind === "bwrap"
      ? await launchBubblewrap(spec, cgroup, tag, disableUserns)
      : await launchPlain(spec, cgroup, tag);
  } catch (error) {
    await cgroup?.end();
    throw error;
  }
}
