import { spawn } from "node:child_process";
import { once } from "node:events";
import { nodeArguments } from "@millwright/terminal";
import { EXIT, textOption, type Cli, type Command, type Values } from "../command.ts";

const BACKUP_MAIN = new URL("../../../standalone/src/backup/main.ts", import.meta.url);
const options = { "key-file": { type: "string" } } as const;

/** Backups of the standalone platform on this machine; they find it as `npm start` does. */
export const backupCommands: Command[] = [
  {
    words: "backup",
    args: ["DIR"],
    summary:
      "Back up the standalone platform of MILLWRIGHT_DATA_DIR, running or not, below DIR; its master key goes to --key-file.",
    options,
    run: (cli, [directory = ""], values) => runStandalone(cli, "backup", directory, values),
  },
  {
    words: "restore",
    args: ["BACKUP"],
    summary:
      "Create MILLWRIGHT_DATA_DIR from a backup, or from the newest below a directory, with the master key in --key-file.",
    options,
    run: (cli, [directory = ""], values) => runStandalone(cli, "restore", directory, values),
  },
];

async function runStandalone(cli: Cli, command: string, directory: string, values: Values): Promise<number> {
  const keyFile = textOption(values, "key-file");
  const args = [command, ...(keyFile === undefined ? [] : ["--key-file", keyFile]), "--", directory];
  const child = spawn(process.execPath, [...nodeArguments(BACKUP_MAIN), ...args], {
    stdio: "inherit",
    env: cli.env,
  });
  const [code] = (await once(child, "exit")) as [number | null];
  return code ?? EXIT.failed;
}
