/** A store function without its first parameter, the connection. */
export type Bound<F> = F extends (connection: never, ...rest: infer A) => infer R ? (...args: A) => R : never;

/** Store functions by name, bound to a connection. */
export type BoundStore<S> = { readonly [K in keyof S]: Bound<S[K]> };

type Store<C> = Readonly<Record<string, (connection: C, ...rest: never[]) => unknown>>;

/**
 * Binds store functions to a connection or a transaction. The bound functions have the types of the store functions, so
 * nothing is declared twice.
 */
export function bindStore<C, S extends Store<C>>(connection: C, store: S): BoundStore<S> {
  const bound: Record<string, unknown> = {};
  for (const [name, f] of Object.entries(store)) bound[name] = (...rest: never[]) => f(connection, ...rest);
  return bound as BoundStore<S>;
}
