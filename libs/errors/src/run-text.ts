import { DomainError } from "./domain-error.ts";

/** Bytes of UTF-8 that a run is given as text: its prompt with the follow-ups that its agent has not received yet. Ours. */
export const RUN_TEXT_BYTES_MAX = 1024 * 1024;

/** Bytes of a run's configuration as JSON, its base prompt included. Ours. */
export const RUN_CONFIG_BYTES_MAX = 128 * 1024;

/** How much of a prompt lists show. Ours. */
export const PROMPT_PREVIEW_CHARACTERS = 2_000;

/** Throws `text_too_large` (too_large) if `subject`, such as "The prompt", has more bytes of text than the limit. */
export function requireTextWithin(subject: string, bytes: number, bytesMax: number = RUN_TEXT_BYTES_MAX): void {
  if (bytes <= bytesMax) return;
  throw new DomainError({
    kind: "too_large",
    reason: "text_too_large",
    message: `${subject} has ${bytes} bytes of text; the limit is ${bytesMax}. Send larger input as an attachment.`,
    metadata: { bytes: String(bytes), limit: String(bytesMax) },
  });
}

/** Throws `text_too_large` (too_large) if a run's configuration has more bytes as JSON than the limit. */
export const requireConfigWithin = (subject: string, config: object): void =>
  requireTextWithin(subject, Buffer.byteLength(JSON.stringify(config)), RUN_CONFIG_BYTES_MAX);
