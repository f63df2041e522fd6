import * as v from "valibot";

/** Schemas of search parameters. Invalid values are ignored, so that an edited URL still opens. */
export const searchText = v.fallback(v.optional(v.string()), undefined);
export const searchList = v.fallback(
  v.optional(
    v.pipe(
      v.union([v.string(), v.array(v.string())]),
      v.transform((value) => [value].flat()),
    ),
  ),
  undefined,
);
export const searchChoice = <const T extends readonly string[]>(...choices: T) =>
  v.fallback(v.optional(v.picklist(choices)), undefined);

/** Parses a query string: repeated names become lists, all values are texts. */
export function parseSearch(search: string): Record<string, string | string[]> {
  const parameters = new URLSearchParams(search);
  return Object.fromEntries(
    [...new Set(parameters.keys())].map((name) => {
      const values = parameters.getAll(name);
      return [name, values.length > 1 ? values : values[0]!];
    }),
  );
}

type SearchValue = string | boolean | number | readonly string[] | undefined;

/** Returns the query string of search parameters. Absent and empty values are left out. */
export function stringifySearch(search: Readonly<Record<string, SearchValue>>): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(search))
    for (const each of [value].flat()) if (each !== undefined && each !== "") parameters.append(name, `${each}`);
  const text = parameters.toString();
  return text === "" ? "" : `?${text}`;
}
