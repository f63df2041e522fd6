import { isMap, isScalar, isSeq, LineCounter, parseDocument, type Document, type Node } from "yaml";
import type { Fence } from "./fences.ts";
import { ScriptError } from "./script-error.ts";
import { isStepName, STEPS, type StepAction, type StepName } from "./steps.ts";

/** A step and the line number of its text. */
export type Step = { readonly name: StepName; readonly line: number; readonly action: StepAction };

/** Parses a block. Throws `ScriptError` with the position of the first error. */
export function parseScript({ content, line: firstLine }: Fence): Step[] {
  const lines = new LineCounter();
  const document = parseDocument(content, {
    schema: "failsafe",
    lineCounter: lines,
    uniqueKeys: true,
    prettyErrors: false,
  });
  const fail = (offset: number, message: string): never => {
    const { line, col } = lines.linePos(offset);
    throw new ScriptError(firstLine + line - 1, col, message);
  };
  const [fault] = document.errors;
  if (fault) fail(fault.pos[0], fault.message);
  if (!isSeq(document.contents) || document.contents.items.length === 0)
    fail(0, "a script is a list of steps, each beginning with `- `");
  return (document.contents as { items: Node[] }).items.map((item, index) =>
    parseStep(document, item, index, fail, (offset) => firstLine + lines.linePos(offset).line - 1),
  );
}

function parseStep(
  document: Document,
  item: Node,
  index: number,
  fail: (offset: number, message: string) => never,
  lineAt: (offset: number) => number,
): Step {
  const start = item.range?.[0] ?? 0;
  const pair = isMap(item) && item.items.length === 1 ? item.items[0] : undefined;
  if (!pair || !isScalar(pair.key)) return fail(start, "a step is one name with its value, such as `- say: Hello`");
  const name = String(pair.key.value);
  if (!isStepName(name))
    return fail(start, `there is no step "${name}"; the steps are ${Object.keys(STEPS).join(", ")}`);
  const parsed = STEPS[name].safeParse((pair.value as Node | null)?.toJS(document) ?? "");
  if (parsed.success) return { name, line: lineAt(start), action: parsed.data };
  const issue = parsed.error.issues[0];
  const node = issue ? (document.getIn([index, name, ...issue.path], true) as Node | undefined) : undefined;
  const where = issue && issue.path.length > 0 ? `${name}.${issue.path.join(".")}` : name;
  return fail(node?.range?.[0] ?? start, `${where}: ${issue?.message ?? "is not valid"}`);
}
