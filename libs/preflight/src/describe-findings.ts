import { table } from "@millwright/terminal";
import { isFailed, type Finding } from "./finding.ts";

/** Returns the findings as a table, and below it what to do about each failed check. */
export function describeFindings(findings: readonly Finding[]): string {
  const rows = findings.map(({ check, address, problem }) => [check, address, problem === null ? "ok" : "FAILED"]);
  const failed = findings.filter(isFailed).map(({ check, address, problem, remedy }) => {
    const what = `${check} (${address}): ${problem}.`;
    return remedy === null ? what : `${what}\n  ${remedy}`;
  });
  return [table(["CHECK", "ADDRESS", "RESULT"], rows), ...failed].join("\n\n");
}
