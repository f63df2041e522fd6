import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";

/**
 * Returns the arguments with which Node.js runs a program of this repository. `main` is its TypeScript file, below
 * `src`. Where the sources are absent, as in an image, the arguments name the compiled file, below `dist`.
 */
export function nodeArguments(main: URL): string[] {
  const source = fileURLToPath(main);
  if (existsSync(source)) return ["--conditions=@millwright/source", "--no-warnings", source];
  return [source.replace(/^(.*)\/src\/(.*)\.ts$/, "$1/dist/$2.js")];
}
