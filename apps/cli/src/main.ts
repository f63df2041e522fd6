import { execute } from "./execute.ts";

process.exitCode = await execute(process.argv.slice(2), {
  env: process.env,
  isColour:  process.stdout.isTTY && !process.env["NO_COLOR"],
  print: (text) => process.stdout.write(`${text}\n`),
  printError: (text) => process.stderr.write(`${text}\n`),
});
