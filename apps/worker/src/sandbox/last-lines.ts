/** The last whole lines of an output, for a message: a line cut in two could hold half of a secret, which no masker knows. */
export function lastLines(output: string, charactersMax = 2_000): string {
  const text = output.trim();
  if (text.length <= charactersMax) return text;
  const end = text.slice(-charactersMax);
  return end.includes("\n") ? end.slice(end.indexOf("\n") + 1) : "…";
}
