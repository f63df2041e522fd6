import { START_REF } from "../benchmark-files.ts";
import { BOOLEAN, closed, common, document, TEXT, TEXT_OR_NULL, TEXTS, type JsonSchema } from "./json-schema.ts";

const SCORE: JsonSchema = { type: "number", minimum: 0, maximum: 1 };

/** The frontmatter of scorers/<slug>/scorer.md */
export const SCORER = document(
  "scorer.schema.json",
  "scorer.md",
  "The frontmatter of a scorer's file; the text after it is the rubric.",
  closed(
    {
      name: { ...(TEXT as object), description: "Absent: the directory's name." },
      description: TEXT_OR_NULL,
      agents: { oneOf: [{ type: "array", items: TEXT, minItems: 1 }, { const: "*" }] },
      output: { const: "classification" },
      labels: {
        type: "array",
        minItems: 1,
        items: closed({ value: TEXT, score: SCORE, description: TEXT_OR_NULL }, { required: ["value", "score"] }),
      },
      passingScore: SCORE,
      samplingRate: { type: "number", minimum: 0, maximum: 100, default: 25 },
      model: TEXT,
      selfImprovement: BOOLEAN,
      enabled: BOOLEAN,
    },
    { required: ["agents", "labels", "passingScore", "model"] },
  ),
);

/** benchmarks/<slug>/suite.yaml */
export const SUITE = document(
  "benchmark_suite.schema.json",
  "suite.yaml",
  "A suite of tasks that measures an agent.",
  closed(
    {
      name: TEXT,
      description: TEXT,
      agent: TEXT,
      tasks: TEXTS,
      configurations: {
        type: "array",
        items: closed(
          { role: TEXT, displayName: TEXT, model: TEXT, harness: common("harness"), runner: TEXT },
          { required: ["role"], more: { oneOf: [{ required: ["model"] }, { required: ["harness"] }] } },
        ),
      },
    },
    { required: ["name", "agent"] },
  ),
);

/** benchmarks/<suite>/tasks/<slug>.yaml */
export const SUITE_TASK = document(
  "benchmark_suite_task.schema.json",
  "tasks/<slug>.yaml",
  "One task of a suite.",
  closed(
    {
      title: TEXT,
      prompt: TEXT,
      successCriteria: TEXT,
      sourceRunId: TEXT,
      startingRepoRefs: { type: "array", items: { type: "string", pattern: START_REF.source } },
      tags: TEXTS,
    },
    { required: ["title", "prompt", "successCriteria"] },
  ),
);
