import { mkdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { giveTo } from "./outside-user.ts";
import { HOME, WORKSPACE, type Mount, type SandboxHost } from "./spec.ts";

/** `uid`: who the sandbox runs as outside; absent: the worker's own user. */
export type WorkspaceClaim = { readonly mounts: readonly Mount[]; readonly uid?: number; readonly release: () => void };

/**
 * Makes workspace and home beneath `dir`, owned by the user that a sandbox over them runs as. The owner changes only while no sandbox runs over them.
 * Errors: those of the file system.
 */
export async function claimWorkspace(host: SandboxHost, dir: string): Promise<WorkspaceClaim> {
  const mounts: Mount[] = [
    { source: join(dir, "workspace"), target: WORKSPACE, writable: true },
    { source: join(dir, "home"), target: HOME, writable: true },
  ];
  // What is above them is the worker's alone; the workspace is read by the sandbox that pushes, whoever runs that.
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
