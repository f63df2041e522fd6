import type { Paint } from "./paint.ts";

/** A unified diff with its added, removed and heading lines coloured. */
export function colourDiff(diff: string, paint: Paint): string {
  return diff
    .split("\n")
    .map((line) => {
      if (line.startsWith("+++") || line.startsWith("---") || line.startsWith("diff ")) return paint.bold(line);
      if (line.startsWith("+")) return paint.green(line);
      if (line.startsWith("-")) return paint.red(line);
      if (line.startsWith("@@")) return paint.cyan(line);
      return line;
    })
    .join("\n");
}
