import type { NewDirective } from "./run-change.ts";
import type { JsonObject } from "./run.ts";

/** A directive to the worker of an execution. `seq` counts per execution. */
export type Directive = {
  readonly executionId: number;
  readonly seq: number;
  readonly attempt: number;
  /** `seq` of the previous directive of the same attempt; 0: this is the first. Workers use it to detect gaps. */
  readonly previousSeq: number;
  readonly kind: NewDirective["kind"];
  readonly payload: JsonObject;
};

/** A file of a follow-up, as named in its directive. */
export type DirectiveFile = { readonly uid: string; readonly fileName: string; readonly mimeType: string };

/** A directive with signed URLs of its files. */
export type LinkedDirective = Directive & {
  readonly files: readonly (DirectiveFile & { readonly downloadUrl: string })[];
};

/** Returns the files of a follow-up's directive. */
export function filesOf({ payload }: Directive): DirectiveFile[] {
  const files = Array.isArray(payload["attachments"]) ? payload["attachments"] : [];
  return files.map((file) => {
    const { uid, file_name: fileName, mime_type: mimeType } = file as Record<string, string>;
    return { uid: uid ?? "", fileName: fileName ?? "", mimeType: mimeType ?? "" };
  });
}
