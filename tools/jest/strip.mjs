// Jest transformer that uses Node's own type stripping, which preserves lines and columns exactly and needs no
// dependency.
import { stripTypeScriptTypes } from "node:module";

export default {
  process: (source, filename) => ({
    code: /\.[mc]?ts$/.test(filename) ? stripTypeScriptTypes(source, { mode: "strip" }) : source,
  }),
};
