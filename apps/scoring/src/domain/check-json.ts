import { isDeepStrictEqual } from "node:util";
import { parseJsonPath, readJsonPath } from "./json-path.ts";
import type { Check } from "./rule.ts";

/** The result of a check with the values compared, or an error that explains why there is none. */
export type CheckResult =
  | { readonly isMet: boolean; readonly text: string }
  | { readonly code: string; readonly message: string };

/** Compares a member of a JSON text. Every member of a text that is not valid JSON is absent. */
export function checkJson(
  { path, equals, exists = true }: Check & { kind: "json_path" },
  text: string,
  where: string,
): CheckResult {
  const parsed = parseJsonPath(path);
  if (!parsed) return { code: "rule_invalid", message: `${path} is not a supported path.` };
  const document = parseJson(text);
  if (document === undefined) return { isMet: !exists, text: `${where} is not JSON` };
  const value = readJsonPath(document.value, parsed);
  if (equals === undefined)
    return {
      isMet: (value !== undefined) === exists,
      text: `${path} ${value === undefined ? "is absent from" : "is present in"} ${where}`,
    };
  const isEqual = value !== undefined && isDeepStrictEqual(value, equals);
  return {
    isMet: isEqual === exists,
    text: `${path} of ${where} ${isEqual ? "equals" : "does not equal"} ${short(JSON.stringify(equals))}`,
  };
}

function parseJson(text: string): { readonly value: unknown } | undefined {
  try {
    return { value: JSON.parse(text) };
  } catch {
    return undefined;
  }
}

const short = (text: string): string => (text.length > 200 ? `${text.slice(0, 200)}…` : text);
