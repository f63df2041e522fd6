import { useState, type ReactNode } from "react";
import { Check, Copy as CopyIcon, Terminal } from "lucide-react";
import { Button } from "./button.tsx";
import { Menu, MenuItem } from "./menu.tsx";
import { useToasts } from "./toasts.tsx";

const DONE_MS = 1_500;

/** Copies a text to the clipboard. */
export function CopyButton({ text, label }: { text: string; label: string }): ReactNode {
  const [isDone, setDone] = useState(false);
  const toasts = useToasts();
  const copy = async (): Promise<void> => {
    try {
      await navigator.clipboard.writeText(text);
      setDone(true);
      setTimeout(() => setDone(false), DONE_MS);
    } catch {
      toasts.failure("The browser does not permit copying on this page. Select the text and copy it.");
    }
  };
  return (
    <Button look="quiet" isIcon isSmall aria-label={isDone ? "Copied" : `Copy ${label}`} onClick={() => void copy()}>
      {isDone ? <Check size={13} aria-hidden /> : <CopyIcon size={13} aria-hidden />}
    </Button>
  );
}

const SHORT_ID = 8;

/** Shows the last characters of an id, which differ between ids of the same time, with a button that copies it. */
export function Id({ value, isFull }: { value: string; isFull?: boolean }): ReactNode {
  return (
    <span className="id" title={value}>
      {isFull ? value : value.slice(-SHORT_ID)}
      <CopyButton text={value} label="id" />
    </span>
  );
}

export type Commands = {
  /** Path below `/api/v1`, with query. */
  readonly path: string;
  readonly method?: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  readonly body?: unknown;
  /** Arguments of the `millwright` command, if it has an equivalent. */
  readonly cli?: string;
};

/** Copies the `curl` and `millwright` commands that do what the page shows. */
export function CopyCommands({ path, method = "GET", body, cli }: Commands): ReactNode {
  const toasts = useToasts();
  const copy = (text: string): void =>
    void navigator.clipboard.writeText(text).then(
      () => toasts.success("Command copied."),
      (error: unknown) => toasts.failure(error),
    );
  return (
    <Menu
      trigger={
        <Button isIcon aria-label="Copy as command">
          <Terminal size={15} aria-hidden />
        </Button>
      }
    >
      <MenuItem onSelect={() => copy(curlOf(path, method, body))}>Copy as curl</MenuItem>
      {cli !== undefined && (
        <MenuItem onSelect={() => copy(`npx millwright ${cli}`)}>Copy as millwright command</MenuItem>
      )}
    </Menu>
  );
}

function curlOf(path: string, method: string, body: unknown): string {
  const parts = [`curl ${method === "GET" ? "" : `-X ${method} `}${shellWord(`${location.origin}/api/v1${path}`)}`];
  parts.push('-H "Authorization: Bearer $MILLWRIGHT_API_KEY"');
  if (body !== undefined) parts.push("-H 'Content-Type: application/json'", `-d ${shellWord(JSON.stringify(body))}`);
  return parts.join(" \\\n  ");
}

/** Quotes a text as one word of a shell command. */
export const shellWord = (text: string): string =>
  /^[\w./:=-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`;
