import { STEPS } from "./steps.ts";

/** The message of a blocked run, and the longer text of its conversation. Both are readable without Markdown. */
export type NoScript = { readonly message: string; readonly text: string };

const FIRST = "No AI model is configured for this run, so no AI has read the message.";
const UNFENCED =
  "The message looks like steps, but they are not in a `scripted` block: put the line ```scripted before them and the line ``` after them.";

const NAMES = Object.keys(STEPS);
const STEP_LINE = new RegExp(String.raw`^\s*- (?:${NAMES.join("|")})(?::|\s*$)`, "m");

/** The example is indented, so that its fence is visible and copied when the text is rendered as Markdown. */
const EXAMPLE = `    \`\`\`scripted
    - say: I will add the file.
    - write: {path: hello.txt, content: "hi"}
    - shell: cat hello.txt
    \`\`\``;

/**
 * Returns what a run reports that has neither an AI model nor a script. Such a run must not report success or invent a
 * result. `prompt` is the message that has no script.
 */
export function noScript(prompt: string): NoScript {
  const first = STEP_LINE.test(prompt) ? `${FIRST} ${UNFENCED}` : FIRST;
  return {
    message: `${first} To use an AI, store the key of a model provider on the Secrets page of the console and start a new run.`,
    text: `${first}

To have an AI do the work, store the key of a model provider on the Secrets page of the console, or with \`millwright secret set ANTHROPIC_API_KEY\`. New runs then use its first model.

Without an AI model, a run executes the steps of a \`scripted\` block. Answer with such a block and this run continues, for example:

${EXAMPLE}

The steps are ${NAMES.join(", ")}.`,
  };
}
