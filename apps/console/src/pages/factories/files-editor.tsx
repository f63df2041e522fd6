import { useState, type ReactNode, type RefObject } from "react";
import type { components } from "../../gen/api.ts";
import { Button } from "../../ui/button.tsx";
import { visibleText } from "../../ui/safe-text.tsx";
import { Select } from "../../ui/select-field.tsx";

type DefinitionFile = components["schemas"]["DefinitionFile"];

type Props = {
  readonly files: readonly DefinitionFile[];
  /** Path of the file that is shown. */
  readonly path: string | undefined;
  readonly onPath: (path: string | undefined) => void;
  readonly onFiles: (files: readonly DefinitionFile[]) => void;
  readonly textRef: RefObject<HTMLTextAreaElement | null>;
};

/** Edits the files of a definition. Nothing is sent. */
export function FilesEditor({ files, path, onPath, onFiles, textRef }: Props): ReactNode {
  const [newPath, setNewPath] = useState("");
  const added = newPath.trim();
  const file = files.find((each) => each.path === path);
  const add = (): void => {
    onFiles([...files, { path: added, content: "" }]);
    onPath(added);
    setNewPath("");
  };
  const remove = (): void => {
    const rest = files.filter((each) => each !== file);
    onFiles(rest);
    onPath(rest[0]?.path);
  };
  return (
    <div className="stack">
      <div className="filters">
        <Select
          label="File"
          value={path ?? ""}
          choices={
            files.length === 0
              ? [{ value: "", label: "No files" }]
              : files.map((each) => ({ value: each.path, label: each.path }))
          }
          onChange={onPath}
        />
        <Button isSmall disabled={!file} onClick={remove}>
          Remove file
        </Button>
        <input
          className="input"
          aria-label="Path of a new file"
          placeholder="agents/helper/agent.md"
          value={newPath}
          onChange={(event) => setNewPath(event.target.value)}
        />
        <Button isSmall disabled={added === "" || files.some((each) => each.path === added)} onClick={add}>
          Add file
        </Button>
      </div>
      {file && (
        <textarea
          ref={textRef}
          className="textarea mono file-text"
          aria-label={`Content of ${visibleText(file.path)}`}
          spellCheck={false}
          value={file.content}
          onChange={(event) =>
            onFiles(files.map((each) => (each === file ? { ...each, content: event.target.value } : each)))
          }
        />
      )}
    </div>
  );
}
