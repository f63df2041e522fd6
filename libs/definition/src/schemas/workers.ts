import { AGENT_TYPES } from "../agent-file.ts";
import { MAC_SHAPES, MAC_VERSIONS } from "../runner-file.ts";
import { closed, common, document, enumOf, executing, TEXT_OR_NULL, TEXTS, type JsonSchema } from "./json-schema.ts";

/** The frontmatter of agents/<name>/agent.md */
export const AGENT = document(
  "agent.schema.json",
  "agent.md",
  "The frontmatter of an agent's file; the text after it is the agent's prompt.",
  executing({
    description: TEXT_OR_NULL,
    agentType: enumOf([...AGENT_TYPES, null]),
    credentialStrategy: common("credentialStrategy"),
  }),
);

const POWERS = Array.from({ length: 15 }, (_, exponent) => 2 ** exponent);
const isMac: JsonSchema = {
  properties: { platform: { properties: { os: { const: "macos" } }, required: ["os"] } },
  required: ["platform"],
};
const macShapes = [...MAC_SHAPES]
  .map((shape) => shape.split("/").map(Number))
  .map(([vcpus, memoryGb]) => ({ properties: { vcpus: { const: vcpus }, memoryGb: { const: memoryGb } } }));

/** runners/<name>.yaml */
export const RUNNER = document(
  "runner.schema.json",
  "runners/<name>.yaml",
  "A machine that agents run on.",
  closed(
    {
      description: { ...(TEXT_OR_NULL as object), maxLength: 240 },
      setupCommands: TEXTS,
      instanceShape: closed(
        {
          vcpus: { type: "integer", minimum: 1, maximum: 1024 },
          memoryGb: { type: "integer", minimum: 1, maximum: 16384 },
        },
        { required: ["vcpus", "memoryGb"] },
      ),
      platform: closed({
        os: enumOf(["linux", "macos"]),
        arch: enumOf(["x86_64", "aarch64"]),
        linux: closed({ dockerImage: { type: "string", pattern: "^\\S+$" } }, { required: ["dockerImage"] }),
        mac: closed({ version: enumOf(MAC_VERSIONS) }),
      }),
    },
    {
      more: {
        if: isMac,
        // oxlint-disable-next-line unicorn/no-thenable -- a keyword of JSON Schema
        then: {
          properties: {
            platform: { properties: { linux: false, arch: { const: "aarch64" } } },
            instanceShape: { anyOf: macShapes },
          },
        },
        else: {
          required: ["platform"],
          properties: {
            platform: { required: ["linux"], properties: { mac: false } },
            instanceShape: { properties: { vcpus: enumOf(POWERS), memoryGb: enumOf(POWERS) } },
          },
        },
      },
    },
  ),
);
