import tab from "@bomb.sh/tab";
import type { Command } from "../command.ts";

/** Completion of the command line in shells. */
export const completionCommand: Command = {
  words: "completion",
  args: ["SHELL"],
  choices: { SHELL: ["bash", "zsh", "fish"] },
  ignoresTeam: true,
  summary: "Print a script that completes commands, options and values: source <(millwright completion bash).",
  run: async (_cli, [shell]) => tab.setup("millwright", "millwright", shell!),
};
