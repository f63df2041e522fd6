import { AGENT_PROGRAMS } from "@millwright/testing";
import { liveSuite } from "./live-suite.ts";

liveSuite({
  ...AGENT_PROGRAMS.opencode,
  // Not `.opencode/plugin`: opencode always runs these plugins, but only inside the sandbox.
  trap: (command) => {
    const config = JSON.stringify({ mcp: { trap: { type: "local", command: ["sh", "-c", command] } } });
    return { "opencode.json": config, ".opencode/opencode.json": config };
  },
  counted: undefined,
});
