/** An object type without undefined members: members of known names that can be undefined are optional instead. */
type DefinedMembers<T> = string extends keyof T
  ? { [K in keyof T]: Exclude<T[K], undefined> }
  : { [K in keyof T as undefined extends T[K] ? never : K]: T[K] } & {
      [K in keyof T as undefined extends T[K] ? K : never]?: Exclude<T[K], undefined>;
    };

/** Returns a copy of an object without its undefined members; null is retained. */
export const omitUndefined = <T extends object>(members: T): DefinedMembers<T> =>
  Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined)) as DefinedMembers<T>;
