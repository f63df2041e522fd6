/** The title of the page, and the name of what it shows below that, such as an automation of a factory. */
type PageTitle = { readonly title: string; readonly detail: string | undefined };

const listeners = new Set<() => void>();
let current: PageTitle = { title: "", detail: undefined };

/** The title of the page, shown in the browser tab and as the last parts of the breadcrumb. */
export const pageTitle = {
  get: (): PageTitle => current,
  set: (changes: Partial<PageTitle>): void => {
    current = { ...current, ...changes };
    const { title, detail } = current;
    document.title = [...(detail === undefined ? [] : [detail]), title, "Millwright"].join(" · ");
    for (const listener of listeners) listener();
  },
  subscribe: (listener: () => void): (() => void) => {
    listeners.add(listener);
    return () => listeners.delete(listener);
  },
};
