import { omitUndefined } from "@millwright/json";
import type { ScorerPart } from "./definition.ts";
import { START, type Problems } from "./diagnostics.ts";
import { Fields, type Placed } from "./fields.ts";
import { parseMarkdown } from "./markdown.ts";

const KEYS = [
  "name",
  "description",
  "agents",
  "output",
  "labels",
  "passingScore",
  "samplingRate",
  "model",
  "selfImprovement",
  "enabled",
] as const;
/** Percent; differs from the API's default. */
const SAMPLING_RATE = 25;

export type ReadScorer = { path: string; part: ScorerPart; nameAt: Placed<string>; agents: Placed<string>[] };

/** Reads scorers/<slug>/scorer.md; undefined if its frontmatter is not valid YAML. */
export function readScorerFile(slug: string, path: string, text: string, problems: Problems): ReadScorer | undefined {
  const parsed = parseMarkdown(path, text, problems);
  if (!parsed) return undefined;
  const fields = new Fields(parsed.document, parsed.map, KEYS);
  for (const key of ["agents", "labels", "passingScore", "model"]) fields.require(key);
  fields.inherit("description");
  const name = fields.text("name");
  const description = fields.text("description");
  const agents = fields.isList("agents") ? fields.texts("agents") : fields.oneOf("agents", ["*"]);
  if (agents?.length === 0)
    fields.error(fields.valueAt("agents"), "FF_MISSING_FIELD", "A scorer needs at least one agent.");
  fields.oneOf("output", ["classification"]);
  const passing = fields.number("passingScore", { min: 0, max: 1 });
  const labels = readLabels(fields, passing);
  const rate = fields.number("samplingRate", { min: 0, max: 100 });
  const model = fields.text("model");
  const selfImprovement = fields.boolean("selfImprovement") ?? false;
  const enabled = fields.boolean("enabled") ?? true;
  if (parsed.body === "")
    problems.error(path, START, "FF_MISSING_FIELD", "The text after the frontmatter is the rubric and is required.");
  return {
    path,
    part: {
      slug,
      name: name ?? slug,
      ...omitUndefined({ description }),
      agents: agents ?? [],
      labels,
      passing_score: passing ?? 0,
      sampling_rate: rate ?? SAMPLING_RATE,
      model: model ?? "",
      self_improvement: selfImprovement,
      enabled,
      prompt: parsed.body,
    },
    nameAt: { value: name ?? slug, at: fields.valueAt("name") },
    agents: Array.isArray(agents) ? agents.map((agent) => ({ value: agent, at: fields.valueAt("agents") })) : [],
  };
}

function readLabels(scorer: Fields, passing: number | undefined): ScorerPart["labels"] {
  const seen = new Set<string>();
  const entries = scorer.list("labels", ["value", "score", "description"]);
  const labels = (entries ?? []).flatMap((entry) => {
    for (const key of ["value", "score"]) entry.require(key);
    entry.inherit("description");
    const [value, score, description] = [
      entry.text("value"),
      entry.number("score", { min: 0, max: 1 }),
      entry.text("description"),
    ];
    if (value === undefined || score === undefined) return [];
    if (seen.has(value))
      entry.error(entry.valueAt("value"), "FF_DUPLICATE_NAME", `The label ${value} is listed twice.`);
    seen.add(value);
    return [{ value, score, ...omitUndefined({ description }) }];
  });
  const isRead = passing !== undefined && labels.length === entries?.length && scorer.isList("labels");
  if (isRead && (labels.every(({ score }) => score >= passing) || labels.every(({ score }) => score < passing))) {
    scorer.error(
      scorer.valueAt("labels"),
      "FF_INVALID_VALUE",
      "At least one label must reach passingScore, and at least one must not.",
    );
  }
  return labels;
}
