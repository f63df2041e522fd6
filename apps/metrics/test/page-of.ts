/** Returns a page of a list; its token is the index of the next one. */
export function pageOf<T>(
  all: readonly T[],
  pageSize: number,
  pageToken: string,
): { page: T[]; nextPageToken: string } {
  const first = Number(pageToken);
  const end = first + pageSize;
  return { page: all.slice(first, end), nextPageToken: end < all.length ? String(end) : "" };
}
