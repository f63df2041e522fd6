/** Adds a value to the parameters of a statement. Returns its placeholder with a cast to `type`. */
export type Bind = (value: unknown, type: string) => string;

/** The parameters of a statement under construction, and the function that adds to them. */
export function binding(): { readonly params: unknown[]; readonly bind: Bind } {
  const params: unknown[] = [];
  return { params, bind: (value, type) => `$${params.push(value)}::${type}` };
}
