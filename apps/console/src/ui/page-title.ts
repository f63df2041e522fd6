const listeners = new Set<() => void>();
let title = "";

/** The title of the page, shown in the browser tab and as the last part of the breadcrumb. */
export const pageTitle = {
  get: (): string => title,
  set: (next: string): void => {
    title = next;
    document.title = `${next} · Millwright`;
    for (const listener of listeners) listener();
  },
  subscribe: (listener: () => void): (() => void) => {
    listeners.add(listener);
    return () => listeners.delete(listener);
  },
};
