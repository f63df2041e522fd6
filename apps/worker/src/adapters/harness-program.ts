import { INSIDE_NODE } from "../sandbox/bubblewrap.ts";

/**
 * Returns the arguments that run an agent program. A JavaScript program runs with the platform's Node.js, regardless of
 * the machine's own. `before` is a module that runs before a script.
 */
export const programArgv = (program: string, before?: string): readonly string[] =>
  /\.[cm]?js$/.test(program)
    ? [
        INSIDE_NODE,
        ...(before === undefined ? [] : ["--import", `data:text/javascript,${encodeURIComponent(before)}`]),
        program,
      ]
    : [program];
