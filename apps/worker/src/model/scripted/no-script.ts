/**
 * The message of a run that has neither an AI model nor a script. Such a run must not report success or invent a
 * result.
 */
export const NO_SCRIPT = `This run uses the model \`scripted\`, which is no AI, so no AI has read this message.

To have an AI do the work, configure a model provider: store its key as a managed secret of the team, for example with \`millwright secret set ANTHROPIC_API_KEY\` (or OPENAI_API_KEY, GOOGLE_API_KEY, OPENAI_COMPATIBLE_BASE_URL), or start the platform with it in its environment. New runs then use its first model, unless they name another; GET /api/v1/agent/models lists them.

Without one, a run takes the steps of a \`scripted\` block in its prompt, for example:

\`\`\`scripted
- say: I will add the file.
- write: {path: hello.txt, content: "hi"}
- shell: cat hello.txt
- pull_request: {title: Add hello}
\`\`\`

The steps are say, shell, shell_output, shell_kill, read, write, edit, search, list, plan, artifact, screenshot, external_reference, skill, pull_request, spawn, wait, stage, ask, finish and fail. Answer with such a block and this run continues.`;
