import type { ReactNode } from "react";
import type { components } from "../../gen/api.ts";
import { Button } from "../../ui/button.tsx";
import { DataTable, type Column } from "../../ui/data-table.tsx";
import { SafeText } from "../../ui/safe-text.tsx";

export type Diagnostic = components["schemas"]["Diagnostic"];
type DefinitionFile = components["schemas"]["DefinitionFile"];

type Props = {
  readonly diagnostics: readonly Diagnostic[];
  /** The files, to show the line of each problem. */
  readonly files?: readonly DefinitionFile[];
  /** Opens the position in an editor. */
  readonly onOpen?: (diagnostic: Diagnostic) => void;
};

/** Shows the problems of a definition with their positions. */
export function Diagnostics({ diagnostics, files, onOpen }: Props): ReactNode {
  if (diagnostics.length === 0) return null;
  const lineOf = ({ path, line }: Diagnostic): string | undefined =>
    files?.find((file) => file.path === path)?.content.split("\n")[line - 1];
  const columns: readonly Column<Diagnostic>[] = [
    {
      title: "Position",
      cell: (diagnostic) => {
        const position = `${diagnostic.path}:${diagnostic.line}:${diagnostic.column}`;
        return onOpen ? (
          <Button look="quiet" isSmall className="mono" onClick={() => onOpen(diagnostic)}>
            <SafeText>{position}</SafeText>
          </Button>
        ) : (
          <span className="mono">
            <SafeText>{position}</SafeText>
          </span>
        );
      },
    },
    {
      title: "Severity",
      cell: ({ severity }) => <span className={`badge ${severity === "error" ? "bad" : "wait"}`}>{severity}</span>,
    },
    {
      title: "Problem",
      cell: (diagnostic) => {
        const line = lineOf(diagnostic);
        return (
          <div className="stack">
            <span>
              <SafeText>{diagnostic.message}</SafeText> <span className="soft small">{diagnostic.code}</span>
            </span>
            {line !== undefined && line.trim() !== "" && (
              <code className="excerpt">
                <SafeText>{line}</SafeText>
              </code>
            )}
          </div>
        );
      },
    },
  ];
  return (
    <DataTable
      caption="Problems"
      columns={columns}
      rows={diagnostics}
      keyOf={({ path, line, column, code, message }) => `${path}:${line}:${column} ${code} ${message}`}
    />
  );
}
