/** Gives a value a place among the parameters of a statement; answers how the statement names it. */
export type Bind = (value: unknown, type: string) => string;

/** The parameters of a statement that is being written. */
export function binding(): { readonly params: unknown[]; readonly bind: Bind } {
  const params: unknown[] = [];
  return { params, bind: (value, type) => `$${params.push(value)}::${type}` };
}
