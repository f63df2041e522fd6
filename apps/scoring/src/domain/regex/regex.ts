import { isWordCode, type CharacterTest } from "./character-class.ts";
import { parsePattern, RegexError, type Assertion, type Node } from "./syntax.ts";

export { PATTERN_CHARACTERS_MAX, RegexError } from "./syntax.ts";

/** too_expensive: the steps were used up; the same pattern and text always use the same number. */
export type MatchResult = "match" | "no_match" | "too_expensive";
export type Regex = { match(text: string): MatchResult };

type Instruction =
  | { readonly op: "character"; readonly test: CharacterTest }
  | { readonly op: "assertion"; readonly assertion: Assertion }
  | { op: "split"; to: number; other: number }
  | { op: "jump"; to: number }
  | { readonly op: "match" };

const INSTRUCTIONS_MAX = 5_000;
const FLAGS = /^[ims]*$/;
/** Well under a second of work. */
const STEPS_MAX = 20_000_000;

/**
 * Compiles a pattern of the RE2-like subset: no back-references, no look-around. Matching simulates all alternatives at once, so its time grows
 * linearly with the text whatever the pattern, and is bounded by a number of steps instead of by a clock: a verdict is reproducible.
 *
 * Throws `RegexError`.
 */
export function compileRegex(pattern: string, flags = ""): Regex {
  if (!FLAGS.test(flags)) throw new RegexError(`Flags must be among i, m and s (got "${flags}").`);
  const node = parsePattern(pattern, { ignoreCase: flags.includes("i"), multiline: flags.includes("m"), dotAll: flags.includes("s") });
  const program: Instruction[] = [];
  emit(program, node);
  program.push({ op: "match" });
  return { match: (text) => simulate(program, text) };
}

function emit(program: Instruction[], node: Node): void {
  if (program.length > INSTRUCTIONS_MAX) throw new RegexError(`The pattern is too large: its repeats expand to more than ${INSTRUCTIONS_MAX} steps.`);
  switch (node.kind) {
    case "empty":
      return;
    case "character":
      return void program.push({ op: "character", test: cached(node.test) });
    case "assertion":
      return void program.push({ op: "assertion", assertion: node.assertion });
    case "sequence":
      return node.nodes.forEach((each) => emit(program, each));
    case "choice":
      return emitChoice(program, node.nodes);
    case "repeat":
      return emitRepeat(program, node);
  }
}

function emitChoice(program: Instruction[], nodes: readonly Node[]): void {
  const jumps: { to: number }[] = [];
  nodes.forEach((node, index) => {
    if (index === nodes.length - 1) return emit(program, node);
    const split = { op: "split" as const, to: program.length + 1, other: 0 };
    program.push(split);
    emit(program, node);
    const jump = { op: "jump" as const, to: 0 };
    program.push(jump);
    jumps.push(jump);
    split.other = program.length;
  });
  for (const jump of jumps) jump.to = program.length;
}

function emitRepeat(program: Instruction[], { node, min, max }: Node & { kind: "repeat" }): void {
  for (let count = 0; count < min; count++) emit(program, node);
  if (max === Infinity) {
    const split = { op: "split" as const, to: program.length + 1, other: 0 };
    program.push(split);
    emit(program, node);
    program.push({ op: "jump", to: program.indexOf(split) });
    split.other = program.length;
    return;
  }
  const splits: { other: number }[] = [];
  for (let count = min; count < max; count++) {
    const split = { op: "split" as const, to: program.length + 1, other: 0 };
    program.push(split);
    splits.push(split);
    emit(program, node);
  }
  for (const split of splits) split.other = program.length;
}

/** Answers for ASCII are computed once. */
function cached(test: CharacterTest): CharacterTest {
  const ascii = Uint8Array.from({ length: 128 }, (_, code) => (test(code) ? 1 : 0));
  return (code) => (code < 128 ? ascii[code] === 1 : test(code));
}

function simulate(program: readonly Instruction[], text: string): MatchResult {
  const seenAt = new Int32Array(program.length).fill(-1);
  const stack: number[] = [];
  let threads: number[] = [];
  let next: number[] = [];
  let steps = 0;
  for (let at = 0, previous = -1; ; ) {
    const code = at < text.length ? text.codePointAt(at)! : -1;
    // Threads that reached this position, and one that begins here.
    const waiting: number[] = [];
    for (const start of [...threads, 0]) {
      stack.push(start);
      while (stack.length > 0) {
        const index = stack.pop()!;
        if (seenAt[index] === at) continue;
        seenAt[index] = at;
        steps += 1;
        const instruction = program[index]!;
        if (instruction.op === "match") return "match";
        if (instruction.op === "jump") stack.push(instruction.to);
        else if (instruction.op === "split") stack.push(instruction.other, instruction.to);
        else if (instruction.op === "assertion") {
          if (ASSERTIONS[instruction.assertion](previous, code)) stack.push(index + 1);
        } else waiting.push(index);
      }
    }
    if (code === -1) return "no_match";
    if (steps > STEPS_MAX) return "too_expensive";
    next = [];
    for (const index of waiting) if ((program[index] as { test: CharacterTest }).test(code)) next.push(index + 1);
    threads = next;
    at += code > 0xffff ? 2 : 1;
    previous = code;
  }
}

const ASSERTIONS: { readonly [name in Assertion]: (previous: number, next: number) => boolean } = {
  text_start: (previous) => previous === -1,
  text_end: (_previous, next) => next === -1,
  line_start: (previous) => previous === -1 || previous === 10,
  line_end: (_previous, next) => next === -1 || next === 10,
  word_boundary: (previous, next) => isWordCode(previous) !== isWordCode(next),
  no_word_boundary: (previous, next) => isWordCode(previous) === isWordCode(next),
};
