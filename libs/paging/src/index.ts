export { Cursors } from "./cursors.ts";
export { clampPageSize } from "./page-size.ts";
