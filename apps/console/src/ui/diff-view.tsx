import type { ReactNode } from "react";
import type { StructuredPatchHunk } from "diff";
import { SafeText } from "./safe-text.tsx";

export type DiffLine = {
  readonly kind: "add" | "del" | "same" | "hunk";
  readonly text: string;
  readonly oldLine?: number;
  readonly newLine?: number;
};

/** Returns the lines of hunks. Without line numbers if the position in the file is unknown. */
export function linesOfHunks(hunks: readonly StructuredPatchHunk[], hasNumbers = true): DiffLine[] {
  return hunks.flatMap(({ oldStart, newStart, oldLines, newLines, lines }) => {
    let [oldLine, newLine] = [oldStart, newStart];
    const head: DiffLine[] = hasNumbers
      ? [{ kind: "hunk", text: `@@ -${oldStart},${oldLines} +${newStart},${newLines} @@` }]
      : [];
    const body = lines
      .filter((line) => !line.startsWith("\\"))
      .map((line): DiffLine => {
        const text = line.slice(1);
        if (line.startsWith("+")) return { kind: "add", text, ...(hasNumbers ? { newLine: newLine++ } : {}) };
        if (line.startsWith("-")) return { kind: "del", text, ...(hasNumbers ? { oldLine: oldLine++ } : {}) };
        return { kind: "same", text, ...(hasNumbers ? { oldLine: oldLine++, newLine: newLine++ } : {}) };
      });
    return [...head, ...body];
  });
}

const SIGNS = { add: "+", del: "−", same: " ", hunk: "" } as const;

/** Shows a change line by line. Signs, not colours alone, mark added and removed lines. */
export function DiffView({ label, lines }: { label: string; lines: readonly DiffLine[] }): ReactNode {
  return (
    <div className="diff" tabIndex={0} role="region" aria-label={label}>
      <table>
        <tbody>
          {lines.map(({ kind, text, oldLine, newLine }, index) => (
            <tr key={index} className={kind}>
              <td className="line">{oldLine}</td>
              <td className="line">{newLine}</td>
              <td>
                <span className="sign">{SIGNS[kind]}</span> <SafeText>{text}</SafeText>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
