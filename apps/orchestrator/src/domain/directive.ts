import type { NewDirective } from "./run-change.ts";
import type { JsonObject } from "./run.ts";

/** Something the worker of an execution must be told; `seq` counts per execution. */
export type Directive = {
  readonly executionId: number;
  readonly seq: number;
  readonly attempt: number;
  /** `seq` of the directive before this one in the same attempt; 0: this is the first. Workers detect gaps by it. */
  readonly previousSeq: number;
  readonly kind: NewDirective["kind"];
  readonly payload: JsonObject;
};

/** A file of a follow-up, as its directive names it. */
export type DirectiveFile = { readonly uid: string; readonly fileName: string; readonly mimeType: string };

/** A directive with links to the files it names. */
export type LinkedDirective = Directive & {
  readonly files: readonly (DirectiveFile & { readonly downloadUrl: string })[];
};

/** The files that came with a follow-up. */
export function filesOf({ payload }: Directive): DirectiveFile[] {
  const files = Array.isArray(payload["attachments"]) ? payload["attachments"] : [];
  return files.map((file) => {
    const { uid, file_name: fileName, mime_type: mimeType } = file as Record<string, string>;
    return { uid: uid ?? "", fileName: fileName ?? "", mimeType: mimeType ?? "" };
  });
}
