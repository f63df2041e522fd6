import { invalidArgument } from "@millwright/errors";

const PAGE = { default: 50, max: 100 };

/** Returns the size of a page; 0 = 50. Errors: limit_invalid. */
export function pageSizeOf(pageSize: number, max: number = PAGE.max): number {
  if (pageSize === 0) return PAGE.default;
  if (pageSize < 1 || pageSize > max)
    throw invalidArgument("limit_invalid", `limit must be between 1 and ${max} (got ${pageSize}).`);
  return pageSize;
}
