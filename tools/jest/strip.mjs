// Jest transformer: Node's own type stripping. Keeps line and column exact, adds no dependency.
import { stripTypeScriptTypes } from "node:module";

export default {
  process: (source, filename) => ({
    code: /\.[mc]?ts$/.test(filename) ? stripTypeScriptTypes(source, { mode: "strip" }) : source,
  }),
};
