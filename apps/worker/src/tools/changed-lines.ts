export type ChangedLines = { readonly lines_added: number; readonly lines_removed: number };

/** Returns how many lines a change adds and removes. Equal lines at the beginning and at the end count as unchanged. */
export function changedLines(before: string, after: string): ChangedLines {
  const [old, now] = [linesOf(before), linesOf(after)];
  let start = 0;
  while (start < old.length && start < now.length && old[start] === now[start]) start += 1;
  let end = 0;
  while (
    end < old.length - start &&
    end < now.length - start &&
    old[old.length - 1 - end] === now[now.length - 1 - end]
  )
    end += 1;
  return { lines_added: now.length - start - end, lines_removed: old.length - start - end };
}

const linesOf = (text: string): string[] => (text === "" ? [] : text.replace(/\n$/, "").split("\n"));
