import { execute } from "./execute.ts";

/** Writes lines until the reader closes the pipe: `millwright … | head` is not a failure. */
const printTo = (stream: NodeJS.WriteStream) => {
  stream.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code === "EPIPE") process.exit();
    throw error;
  });
  return (text: string): void => void stream.write(`${text}\n`);
};

process.exitCode = await execute(process.argv.slice(2), {
  env: process.env,
  isColour: process.stdout.isTTY && !process.env["NO_COLOR"],
  print: printTo(process.stdout),
  printError: printTo(process.stderr),
});
