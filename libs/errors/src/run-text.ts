import { DomainError } from "./domain-error.ts";

/** Maximum bytes (UTF-8) of text for a run: its prompt with the follow-ups that its agent has not received yet. */
export const RUN_TEXT_BYTES_MAX = 1024 * 1024;

/** Maximum bytes of a run's configuration as JSON, including its base prompt. */
export const RUN_CONFIG_BYTES_MAX = 128 * 1024;

/** Maximum characters of a prompt in lists. */
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
  requireTextWithin(subject, new TextEncoder().encode(JSON.stringify(config)).length, RUN_CONFIG_BYTES_MAX);
