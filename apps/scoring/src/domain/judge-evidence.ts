import { EVIDENCE_FILES } from "./judge-prompt.ts";

/** The evidence of a run that judges can read. */
export type RunEvidence = {
  readonly state: string;
  readonly errorCode: string;
  readonly prompt: string;
  readonly finalMessage: string;
  readonly conversationJson: string;
  readonly diff: string;
  readonly artifacts: readonly unknown[];
  readonly costMicros: number;
  readonly totalTokens: number;
  readonly runTimeMs: number;
  readonly title: string;
};

export type EvidenceFile = {
  readonly fileName: string;
  readonly mimeType: string;
  readonly data: Uint8Array<ArrayBuffer>;
};

/** Maximum length of a file in characters; longer files are truncated. */
const FILE_CHARACTERS_MAX = 500_000;
const TEXT_CHARACTERS_MAX = 100_000;

/**
 * Returns the files with the evidence for a judge. Each has a maximum length, and a truncated file has a note at the
 * position of the omitted text.
 */
export function evidenceFiles(run: RunEvidence): EvidenceFile[] {
  const outcome = {
    title: run.title,
    task: cut(run.prompt, TEXT_CHARACTERS_MAX),
    state: run.state,
    error_code: run.errorCode || undefined,
    cost_usd: run.costMicros / 1e6,
    total_tokens: run.totalTokens,
    run_time_seconds: run.runTimeMs / 1000,
    final_message: cut(run.finalMessage, TEXT_CHARACTERS_MAX),
  };
  return [
    evidenceFile(EVIDENCE_FILES.outcome, "application/json", JSON.stringify(outcome, null, 2)),
    evidenceFile(EVIDENCE_FILES.conversation, "application/json", run.conversationJson),
    evidenceFile(EVIDENCE_FILES.diff, "text/plain", run.diff),
    evidenceFile(EVIDENCE_FILES.artifacts, "application/json", JSON.stringify(run.artifacts, null, 2)),
  ];
}

/** Returns a file of limited length. An empty text is replaced by "(none)", because attachments must not be empty. */
export const evidenceFile = (fileName: string, mimeType: string, text: string): EvidenceFile => ({
  fileName,
  mimeType,
  data: new TextEncoder().encode(cut(text === "" ? "(none)\n" : text, FILE_CHARACTERS_MAX)),
});

/** Truncates a text in the middle: the beginning and the end contain most of the relevant information. */
function cut(text: string, charactersMax: number): string {
  if (text.length <= charactersMax) return text;
  const half = Math.floor(charactersMax / 2);
  const omitted = text.length - 2 * half;
  return `${text.slice(0, half).toWellFormed()}\n[truncated: ${omitted} of ${text.length} characters are not shown]\n${text.slice(-half).toWellFormed()}`;
}
