import type { ReactNode } from "react";
import Anser, { type AnserJsonEntry } from "anser";
import { SafeText } from "./safe-text.tsx";

/** Control sequences other than colours (cursor, title, clipboard, links), and control characters. */
const SEQUENCES =
  // eslint-disable-next-line no-control-regex
  /\u001b(?:\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|[PX^_][^\u001b]*(?:\u001b\\)?|\[[0-?]*[ -/]*[@-ln-~]|[ -/]*[0-Z\\^-~])|[\u0000-\u0008\u000b\u000c\u000e-\u001a\u001c-\u001f\u007f-\u009f]/g;

/** Shows output of a command. Colours become styled text; all other terminal control is removed. */
export function TerminalBlock({ label, children }: { label: string; children: string }): ReactNode {
  return (
    <pre className="terminal" tabIndex={0} role="region" aria-label={label}>
      {Anser.ansiToJson(plain(children), { use_classes: true, remove_empty: true }).map((entry, index) => (
        <span key={index} className={classesOf(entry) || undefined}>
          <SafeText>{entry.content}</SafeText>
        </span>
      ))}
    </pre>
  );
}

/** Removes control sequences, and applies carriage returns, by which programs overwrite their progress lines. */
function plain(text: string): string {
  return text
    .replaceAll(SEQUENCES, "")
    .split("\n")
    .map((line) => line.replace(/\r+$/, "").split("\r").at(-1) ?? "")
    .join("\n");
}

const classesOf = ({ fg, decorations }: AnserJsonEntry): string =>
  [fg && fg.replace(/^ansi-(?:bright-)?/, ""), ...decorations].filter(Boolean).join(" ");
