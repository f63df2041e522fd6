/** A text in the browser's local storage that components subscribe to with `useSyncExternalStore`. */
export type StoredValue = {
  readonly get: () => string | undefined;
  readonly set: (value: string | undefined) => void;
  readonly subscribe: (listener: () => void) => () => void;
};

/** Returns the value of a local storage key. Changes by other tabs notify listeners too. */
export function storedValue(name: string): StoredValue {
  const listeners = new Set<() => void>();
  const notify = (): void => listeners.forEach((listener) => listener());
  addEventListener("storage", (event) => event.key === name && notify());
  return {
    get: () => localStorage.getItem(name) ?? undefined,
    set(value) {
      if (value === undefined) localStorage.removeItem(name);
      else localStorage.setItem(name, value);
      notify();
    },
    subscribe(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}
