/**
 * Returns the last complete lines of an output, for a message. A truncated line could contain a part of a secret, which
 * the masker does not recognize.
 */
export function lastLines(output: string, charactersMax = 2_000): string {
  const text = output.trim();
  if (text.length <= charactersMax) return text;
  const end = text.slice(-charactersMax);
  return end.includes("\n") ? end.slice(end.indexOf("\n") + 1) : "…";
}
