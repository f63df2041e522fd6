import { z } from "zod";

/** A snapshot may not be larger; what is, is left out with a warning. */
export const SNAPSHOT_BYTES_MAX = 512 * 1024 * 1024;
export const SNAPSHOT_TIMEOUT_MS = 120_000;

/** The ref that holds a working copy's state: a commit of everything in it, on top of its HEAD. */
export const SNAPSHOT_REF = "refs/millwright/snapshot";

/** Inside a snapshot: `manifest.json`, one bundle per changed repository, and the workspace's other files. */
export const MANIFEST = "manifest.json";
export const FILES = "files.tgz";
export const bundleName = (directory: string): string => `${directory}.bundle`;

/** A snapshot is made inside the agent's sandbox: whoever restores one believes nothing else of it. */
export const manifestSchema = z.object({
  version: z.literal(1),
  repositories: z.array(z.object({ directory: z.string().max(255), branch: z.string().max(255).nullable() })).max(100),
  hasFiles: z.boolean(),
});
export type Manifest = z.output<typeof manifestSchema>;
