import { mkdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { giveTo } from "./outside-user.ts";
import { HOME, WORKSPACE, type Mount, type SandboxHost } from "./spec.ts";

/** The mounts of a workspace. `uid`: the host user that the sandbox runs as; absent: the worker's own user. */
export type WorkspaceClaim = { readonly mounts: readonly Mount[]; readonly uid?: number; readonly release: () => void };

/**
 * Creates workspace and home below `dir`, owned by the user that a sandbox with these mounts runs as. The owner changes
 * only while no sandbox uses them. Throws file system errors.
 */
export async function claimWorkspace(host: SandboxHost, dir: string): Promise<WorkspaceClaim> {
  const mounts: Mount[] = [
    { source: join(dir, "workspace"), target: WORKSPACE, writable: true },
    { source: join(dir, "home"), target: HOME, writable: true },
  ];
  // The parent directories are accessible only to the worker. The workspace itself is readable by all users, because
  // the pushing sandbox may run as a different user.
  for (const { source, target } of mounts)
    await mkdir(source, { recursive: true, mode: target === WORKSPACE ? 0o755 : 0o700 });
  const workspace = join(dir, "workspace");
  const uid = host.kind === "bwrap" ? host.users?.take(workspace) : undefined;
  if (uid === undefined) return { mounts, release: () => undefined };
  const release = (): void => host.users?.give(workspace);
  try {
    await Promise.all(
      mounts.map(async ({ source }) => ((await stat(source)).uid === uid ? undefined : giveTo(uid, source))),
    );
  } catch (error) {
    release();
    throw error;
  }
  return { mounts, uid, release };
}
