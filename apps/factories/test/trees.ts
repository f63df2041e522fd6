/** Returns a small valid definition. `changes` replaces files; undefined removes them. */
export const aTree = (changes: Record<string, string | undefined> = {}): { path: string; content: string }[] =>
  Object.entries({ ...BASE, ...changes }).flatMap(([path, content]) =>
    content === undefined ? [] : [{ path, content }],
  );

const BASE: Record<string, string | undefined> = {
  "factory.yaml": [
    "schemaVersion: v1alpha1",
    "name: Mended shop",
    "description: From files",
    "alias: mended",
    "repositories:",
    "  - { owner: acme, name: shop }",
    "secrets: [NPM]",
    "agentDefaults:",
    "  model: auto",
    "  runner: box",
    "",
  ].join("\n"),
  "agents/foreman/agent.md": "---\nagentType: FOREMAN\n---\nPlan.\n",
  "agents/hand/agent.md": "---\nagentType: IMPLEMENT\n---\nDo.\n",
  "runners/box.yaml": "platform: { linux: { dockerImage: debian } }\n",
  "skills/tests/SKILL.md": "---\nname: tests\ndescription: how to test\n---\nRun them.\n",
};
