import type { RequestOptions } from "@millwright/api-client";
import type { Cli } from "./command.ts";

type Page = Record<string, unknown> & { page_info: { next_cursor?: string } };

/** Returns the items of all pages of a list. `member`: the name of the items in a page. */
export async function listAll<T>(cli: Cli, path: string, member: string, query: RequestOptions["query"]): Promise<T[]> {
  const items: T[] = [];
  let cursor: string | undefined;
  do {
    const page: Page = await cli.api().get<Page>(path, { ...query, cursor });
    items.push(...(page[member] as T[]));
    cursor = page.page_info.next_cursor;
  } while (cursor !== undefined);
  return items;
}
