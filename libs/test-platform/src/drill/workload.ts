import type { SeededRandom } from "./seeded-random.ts";

/** A request that a client sends while a run is active. */
export type Action =
  | { readonly kind: "followup"; readonly atMs: number; readonly isAfterEnd: boolean; readonly text: string }
  | { readonly kind: "cancel"; readonly atMs: number; readonly isTree: boolean }
  | { readonly kind: "interrupt"; readonly atMs: number };

/** Kinds of runs and their relative frequency. */
const WEIGHTS = {
  steady: 4,
  family: 3,
  talk: 3,
  question: 2,
  interrupted: 2,
  cancelled: 3,
  cancelledFamily: 2,
  work: 1,
} as const;
export type RunKind = keyof typeof WEIGHTS;

/** A planned run and the result expected of it if it succeeds. */
export type RunPlan = {
  readonly kind: RunKind;
  /** Unique among all schedules; contained in every text that the run emits. */
  readonly name: string;
  readonly atMs: number;
  readonly prompt: string;
  readonly actions: readonly Action[];
  /** True for a run that is dispatched to a factory with a repository. */
  readonly isWork: boolean;
  /** What its own script emits or creates, each once. */
  readonly texts: readonly string[];
  readonly files: readonly string[];
  readonly pullRequests: number;
  readonly children: readonly ChildPlan[];
};

export type ChildPlan = Pick<RunPlan, "name" | "texts" | "files" | "children">;

type Written = ChildPlan & { readonly steps: readonly string[] };

/** Chooses the script of a run and the requests sent to it. */
export function planRun(random: SeededRandom, name: string): RunPlan {
  const atMs = random.between(0, 1_000);
  const kind = random.weighted(WEIGHTS);
  return { kind, ...planOfKind(random, name, kind, atMs) };
}

function planOfKind(random: SeededRandom, name: string, kind: RunKind, atMs: number): Omit<RunPlan, "kind"> {
  switch (kind) {
    case "steady":
      return plan(steady(random, name), { atMs });
    case "family":
      return plan(family(random, name, random.between(1, 2), []), { atMs });
    case "talk":
      return plan(steady(random, name), { atMs, actions: followUps(random, name, random.between(1, 3)) });
    case "question":
      return plan(written(name, { before: [`ask: ${name} which?`] }), {
        atMs,
        actions: [
          { kind: "followup", atMs: 0, isAfterEnd: true, text: `${name}.answer` },
          ...followUps(random, name, random.between(0, 1)),
        ],
      });
    case "interrupted": // may precede the command; the follow-up then starts it
      return plan(written(name, { before: [`shell: sleep ${random.pick([0.1, 1, 10])}`] }), {
        atMs,
        actions: [
          { kind: "interrupt", atMs: random.between(0, 3_000) },
          { kind: "followup", atMs: 0, isAfterEnd: true, text: `${name}.on` },
        ],
      });
    case "cancelled": {
      const seconds = random.pick([0.1, 1, 600]);
      // A follow-up after the cancel resumes the script.
      const words = followUps(random, name, seconds < 600 ? random.between(0, 1) : 0);
      return plan(written(name, { before: [`shell: setsid sleep 600 & sleep ${seconds}`] }), {
        atMs,
        actions: [{ kind: "cancel", atMs: random.between(0, 3_000), isTree: false }, ...words],
      });
    }
    case "cancelledFamily":
      return plan(family(random, name, 2, [`shell: sleep ${random.pick([0.5, 600])}`]), {
        atMs,
        actions: [{ kind: "cancel", atMs: random.between(200, 3_500), isTree: true }],
      });
    case "work":
      return plan(
        written(name, {
          before: [`write: {path: ${name}.txt, content: ${name}}`],
          after: [`pull_request: {title: ${name}}`],
        }),
        { atMs, isWork: true, pullRequests: 1 },
      );
    default:
      return kind satisfies never;
  }
}

function plan(
  { name, steps, ...did }: Written,
  more: { atMs: number; actions?: readonly Action[]; isWork?: boolean; pullRequests?: number },
): Omit<RunPlan, "kind"> {
  return { name, prompt: script(steps), ...did, actions: [], isWork: false, pullRequests: 0, ...more };
}

/** Returns a script that emits one text before and one after its other steps. */
function written(
  name: string,
  {
    before = [],
    after = [],
    files = [],
    children = [],
  }: {
    before?: readonly string[];
    after?: readonly string[];
    files?: readonly string[];
    children?: readonly ChildPlan[];
  } = {},
): Written {
  const texts = [`${name}.first`, `${name}.last`];
  return { name, steps: [`say: ${texts[0]}`, ...before, ...after, `say: ${texts[1]}`], texts, files, children };
}

function steady(random: SeededRandom, name: string): Written {
  const files = Array.from({ length: random.between(0, 2) }, (_one, n) => `${name}-${n}.txt`);
  const steps = [
    `shell: sleep ${random.pick([0, 0.2, 1])}`,
    ...files.flatMap((file) => [`shell: echo ${file} > ${file}`, `artifact: ${file}`]),
  ];
  return written(name, { before: steps, files });
}

/**
 * Returns a parent run that waits for its children; children may be parents themselves. `steps` are the steps of runs
 * without children.
 */
function family(random: SeededRandom, name: string, depth: number, steps: readonly string[]): Written {
  const members = Array.from({ length: random.between(1, 2) }, (_one, n) => {
    const child = `${name}c${n}`;
    return depth > 1 && random.fraction() < 0.4
      ? family(random, child, depth - 1, steps)
      : written(child, { before: steps });
  });
  const spawns = members.map((member) =>
    [
      "spawn:",
      "  prompt: |",
      ...script(member.steps, depth)
        .split("\n")
        .map((line) => `    ${line}`),
    ].join("\n"),
  );
  return written(name, {
    before: [...spawns, `wait: {policy: ${random.pick(["all", "any"])}, allow_failure: true}`],
    children: members.map(({ name: child, texts, files, children }) => ({ name: child, texts, files, children })),
  });
}

/** Follow-ups that the script does not depend on; it continues with its remaining steps. */
const followUps = (random: SeededRandom, name: string, count: number): Action[] =>
  Array.from({ length: count }, (_one, n) => ({
    kind: "followup",
    atMs: random.between(0, 3_000),
    isAfterEnd: false,
    text: `${name}.word${n}`,
  }));

/** An outer code fence must be longer than the fences of the blocks inside it. */
const script = (steps: readonly string[], depth = 9): string => {
  const fence = "`".repeat(3 + depth);
  return [`${fence}scripted`, ...steps.map((step) => `- ${step.replaceAll("\n", "\n  ")}`), fence].join("\n");
};
