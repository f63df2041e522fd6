import { storedValue } from "../api/stored-value.ts";

/** "light", "dark", or absent to follow the system. */
export const theme = storedValue("millwright.theme");

const apply = (): void => {
  const value = theme.get();
  if (value === undefined) delete document.documentElement.dataset["theme"];
  else document.documentElement.dataset["theme"] = value;
};

/** Applies the stored theme now and whenever it changes. */
export function applyTheme(): void {
  apply();
  theme.subscribe(apply);
}
