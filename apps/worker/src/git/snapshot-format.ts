import { z } from "zod";

/** The maximum size of a snapshot in bytes. A larger one is not stored, with a warning. */
export const SNAPSHOT_BYTES_MAX = 512 * 1024 * 1024;
export const SNAPSHOT_TIMEOUT_MS = 120_000;

/** The ref of a working copy's state: a commit of all its files, on top of its HEAD. */
export const SNAPSHOT_REF = "refs/millwright/snapshot";

/**
 * The contents of a snapshot: `manifest.json`, one bundle per changed repository, and the other files of the workspace.
 */
export const MANIFEST = "manifest.json";
export const FILES = "files.tgz";
export const bundleName = (directory: string): string => `${directory}.bundle`;

/**
 * The manifest is written inside the agent's sandbox, so it is untrusted: a restore uses nothing but these validated
 * fields.
 */
export const manifestSchema = z.object({
  version: z.literal(1),
  repositories: z.array(z.object({ directory: z.string().max(255), branch: z.string().max(255).nullable() })).max(100),
  hasFiles: z.boolean(),
});
export type Manifest = z.output<typeof manifestSchema>;
