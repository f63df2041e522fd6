import type { Paint } from "./paint.ts";
import { printable } from "./printable.ts";

/** A unified diff with its added, removed and heading lines coloured; control sequences in it are removed. */
export function colourDiff(diff: string, paint: Paint): string {
  return printable(diff)
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
