import type { YAMLMap } from "yaml";
import { START, type Problems } from "./diagnostics.ts";
import { parseYaml, type YamlDocument } from "./yaml-document.ts";

/** A Markdown file: its frontmatter, and the trimmed text after it. */
export type MarkdownFile = { document: YamlDocument; map: YAMLMap | null; body: string };

/**
 * Splits frontmatter (between a first line `---` and a closing `---`) from the body and parses it, preserving the
 * file's line numbers. Reports the reason and returns undefined if it is missing or not YAML.
 */
export function parseMarkdown(path: string, text: string, problems: Problems): MarkdownFile | undefined {
  const lines = text.replace(/^\uFEFF/, "").split("\n");
  if (!isFence(lines[0])) {
    problems.error(
      path,
      START,
      "FF_PARSE_ERROR",
      "The file must start with frontmatter: a line --- before it and one after it.",
    );
    return undefined;
  }
  const end = lines.findIndex((line, index) => index > 0 && isFence(line));
  if (end === -1) {
    problems.error(path, START, "FF_PARSE_ERROR", "The frontmatter has no closing line ---.");
    return undefined;
  }
  // The fence becomes an empty line, so that positions are those of the file.
  const parsed = parseYaml(path, ["", ...lines.slice(1, end), ""].join("\n"), problems);
  return (
    parsed && {
      ...parsed,
      body: lines
        .slice(end + 1)
        .join("\n")
        .trim(),
    }
  );
}

const isFence = (line: string | undefined): boolean => line !== undefined && /^---[ \t]*\r?$/.test(line);
