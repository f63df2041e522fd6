import { attachmentKey } from "../../storage/domain/blob-keys.ts";
import { filesOf, type Directive, type LinkedDirective } from "../../runs/domain/directive.ts";
import type { WorkerSession } from "../../runs/domain/worker-session.ts";

export type PendingDirectivesDeps = {
  /** Returns the stored directives that are not yet acknowledged, in order. */
  listPendingDirectives(session: Pick<WorkerSession, "uid">): Promise<readonly Directive[]>;
  /** Returns a signed URL to read a stored file. */
  downloadUrl(key: string, contentType: string): Promise<string>;
};

/**
 * Returns the directives that a worker session has not acknowledged. Links to their files are signed again for each
 * call.
 */
export async function pendingDirectives(
  deps: PendingDirectivesDeps,
  session: Pick<WorkerSession, "uid">,
): Promise<LinkedDirective[]> {
  return Promise.all(
    (await deps.listPendingDirectives(session)).map(async (directive) => ({
      ...directive,
      files: await Promise.all(
        filesOf(directive).map(async (file) => ({
          ...file,
          downloadUrl: await deps.downloadUrl(attachmentKey(file), file.mimeType),
        })),
      ),
    })),
  );
}
