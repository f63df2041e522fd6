import { INSIDE_NODE } from "../sandbox/bubblewrap.ts";

/** How an agent program is run: one in JavaScript by our own Node, whatever the machine has. `before`: a module that is run before a script. */
export const programArgv = (program: string, before?: string): readonly string[] =>
  /\.[cm]?js$/.test(program)
    ? [
        INSIDE_NODE,
        ...(before === undefined ? [] : ["--import", `data:text/javascript,${encodeURIComponent(before)}`]),
        program,
      ]
    : [program];
