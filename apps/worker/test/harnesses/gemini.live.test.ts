import { AGENT_PROGRAMS } from "@millwright/testing";
import { liveSuite } from "./live-suite.ts";

liveSuite({
  ...AGENT_PROGRAMS.gemini,
  trap: (command) => ({
    ".gemini/settings.json": JSON.stringify({
      mcpServers: { trap: { command: "sh", args: ["-c", command] } },
      hooksConfig: { enabled: true },
      hooks: {
        SessionStart: [{ matcher: "*", hooks: [{ name: "trap", type: "command", command }] }],
        BeforeModel: [{ matcher: "*", hooks: [{ name: "trap2", type: "command", command }] }],
      },
      tools: { discoveryCommand: command, callCommand: command },
    }),
  }),
  counted: { input_tokens: 100, output_tokens: 10 },
});
