import { posix } from "node:path";
import { SandboxRefusal, FileTooLarge } from "../sandbox/sandbox-errors.ts";
import type { Workspace } from "./tool.ts";
import { ToolFailure } from "./tool-failure.ts";

/** Returns a path in the form that `sandbox-init` expects. `sandbox-init` checks whether it is inside the workspace. */
export const absolute = ({ base }: Workspace, path: string): string => posix.resolve(base, path);

/** Returns a path for display, relative to the workspace. */
export const shownPath = (workspace: Workspace, path: string): string =>
  posix.relative(workspace.sandbox.workspace, absolute(workspace, path)) || ".";

const REASONS: Record<string, (path: string) => string> = {
  outside_workspace: (path) => `${path} is outside the workspace.`,
  not_found: (path) => `There is no file ${path}.`,
  not_a_file: (path) => `${path} is not a regular file.`,
  not_a_directory: (path) => `There is no directory ${path}.`,
};

/** Converts a refusal of the sandbox into a `ToolFailure` with a message for the agent. */
export async function onPath<T>(path: string, act: () => Promise<T>): Promise<T> {
  try {
    return await act();
  } catch (error) {
    if (error instanceof SandboxRefusal)
      throw new ToolFailure(REASONS[error.code]?.(path) ?? `${path}: ${error.message}`);
    if (error instanceof FileTooLarge) throw new ToolFailure(error.message);
    throw error;
  }
}

/** Returns a text file of at most 1 MiB. Throws `ToolFailure`, also for a binary file. */
export async function readText(workspace: Workspace, path: string): Promise<string> {
  const { sandbox } = workspace;
  const content = await onPath(path, () =>
    sandbox.readFile(sandbox.workspace, absolute(workspace, path), TEXT_BYTES_MAX),
  );
  if (content.includes(0)) throw new ToolFailure(`${path} is a binary file.`);
  return content.toString("utf8");
}
const TEXT_BYTES_MAX = 1024 * 1024;
