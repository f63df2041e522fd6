/**
 * Sets what the viewer cannot read from attributes: colours by the reader's preference, and this server as the target
 * of trial requests.
 */
export const DOCS_SCRIPT = `const viewer = document.querySelector("rapi-doc");
const dark = matchMedia("(prefers-color-scheme: dark)");
const COLOURS = {
  light: { "theme": "light", "bg-color": "#ffffff", "text-color": "#24292f", "primary-color": "#2d6a4f", "nav-bg-color": "#f4f6f5", "nav-text-color": "#3d4a44", "nav-hover-bg-color": "#e3eae6", "nav-hover-text-color": "#14352a", "nav-accent-color": "#2d6a4f" },
  dark: { "theme": "dark", "bg-color": "#15191c", "text-color": "#d5dbde", "primary-color": "#74c69d", "nav-bg-color": "#101416", "nav-text-color": "#aeb8bd", "nav-hover-bg-color": "#1d2529", "nav-hover-text-color": "#ffffff", "nav-accent-color": "#74c69d" },
};
const paint = () => {
  for (const [name, value] of Object.entries(COLOURS[dark.matches ? "dark" : "light"])) viewer.setAttribute(name, value);
};
paint();
dark.addEventListener("change", paint);
viewer.setAttribute("server-url", location.origin);
`;
